"""Expressions as people write them: what operators build, what is refused, what is text."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from millpond.base.errors import ExpressionSyntaxError, TypeMismatchError
from millpond.plan import types as t
from millpond.plan.expr import (
    CallExpr,
    LiteralExpr,
    call,
    col,
    element,
    from_epoch_micros,
    if_else,
    lit,
    path,
)
from millpond.plan.tree import replace, topological

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.plan.expr import Expr

A = col("a")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (A == 1, "(a = 1)"),
        (A != "x", "(a != 'x')"),
        (A < 1.5, "(a < 1.5)"),
        (A <= 1, "(a <= 1)"),
        (A > 1, "(a > 1)"),
        (A < 1, "(a < 1)"),
        (A >= None, "(a >= null)"),
        (A & (A > 1) & lit(True), "(a and (a > 1) and true)"),
        (A | (A & A), "(a or (a and a))"),
        (True & A, "(true and a)"),
        (False | A, "(false or a)"),
        (~A, "not a"),
        (A + 1 - 2 * A, "((a + 1) - (2 * a))"),
        (1 - A, "(1 - a)"),
        (1 / A, "(1 / a)"),
        (7 % A, "(7 % a)"),
        (A % 7, "(a % 7)"),
        (A.div(2), "(a div 2)"),
        (-A, "-a"),
        (abs(A), "abs(a)"),
        (A.same_as(None), "(a <=> null)"),
        (A.is_null(), "a is null"),
        (A.is_not_null(), "a is not null"),
        (A.isin([1, None]), "a in (1, null)"),
        (A.between(1, 3), "((a >= 1) and (a <= 3))"),
        (A.cast(t.LONG), "cast(a as long)"),
        (A.cast(t.LONG, on_error="null"), "try_cast(a as long)"),
        (A.parse_json(t.List(t.LONG)), "parse_json(a as list<long>)"),
        (A.any(element() == "x"), "any(a, (element = 'x'))"),
        (A.all(path("v") > 1), "all(a, (v > 1))"),
        (A.any(), "any(a, element)"),
        (if_else(A, 1, 2), "if_else(a, 1, 2)"),
        (from_epoch_micros(A), "from_epoch_micros(a)"),
        (A.time_bucket(dt.timedelta(minutes=1)), "time_bucket(a, 60000000)"),
        (col("Site.Temp C"), '"Site.Temp C"'),
        (path("a.b[*][-1]"), "a.b[*][-1]"),
        (lit(dt.date(2024, 1, 2)), "date '2024-01-02'"),
        (lit(b"\x00\xff"), "x'00ff'"),
        (lit(decimal.Decimal("1.50")), "1.50d"),
        (lit("it's\na\ttab"), r"'it''s\na\ttab'"),
    ],
)
def test_operators_build_expressions(expr: Expr, text: str) -> None:
    assert str(expr) == text


def test_names_are_taken_whole_and_paths_are_read() -> None:
    assert str(col("a.b")) == '"a.b"'
    assert str(path("a.b")) == "a.b"
    with pytest.raises(ExpressionSyntaxError):
        path("a..b")


@pytest.mark.parametrize(
    ("use", "message", "hint"),
    [
        (lambda: bool(A > 1), "no truth value", "& | ~"),
        (lambda: A // 2, "// would round down", ".div("),
        (lambda: 7 // A, "// would round down", ".div("),
        (lambda: not A, "no truth value", "parentheses"),
        (lambda: 1 < A < 3, "no truth value", "& | ~"),
        (lambda: list(A), "can't be iterated", None),
        (lambda: 3 in A, "`in` does not build", "isin"),
        (lambda: A.isin("abc"), "a list of values, not 'abc'", None),
        (lambda: lit(decimal.Decimal("NaN")), "is not a decimal number", None),
        (lambda: lit(np.array([1, 2])), "an array can't be a literal", "isin"),
        (
            lambda: lit(np.datetime64("2024-01-01T00:00:00.123456789")),
            "can't be a literal",
            "micro",
        ),
    ],
)
def test_python_that_does_not_build_an_expression_says_so(
    use: Callable[[], object], message: str, hint: str | None
) -> None:
    with pytest.raises(TypeMismatchError, match=message) as error:
        use()
    assert hint is None or hint in str(error.value.hint)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array(7), 7),
        (np.datetime64("2024-01-02"), dt.date(2024, 1, 2)),
        (np.datetime64("2024-01-02T03:04:05"), dt.datetime(2024, 1, 2, 3, 4, 5)),  # noqa: DTZ001
        (np.datetime64("2024-01-02T03:04:05.000001000"), dt.datetime(2024, 1, 2, 3, 4, 5, 1)),  # noqa: DTZ001
        (np.datetime64("NaT"), None),
    ],
    ids=str,
)
def test_numpy_scalars_are_python_values(value: Any, expected: object) -> None:
    made = lit(value)
    assert isinstance(made, LiteralExpr)
    assert made.value == expected
    assert type(made.value) is type(expected)


def test_a_literal_of_an_expression_is_that_expression() -> None:
    assert lit(A) is A


def test_conjunctions_are_flat() -> None:
    both = (A & A) & (A & A)
    assert isinstance(both, CallExpr)
    assert len(both.args) == 4
    mixed = (A & A) | A
    assert isinstance(mixed, CallExpr)
    assert len(mixed.args) == 2


def test_time_buckets_count_whole_microseconds() -> None:
    bucket = A.time_bucket(dt.timedelta(days=36524, microseconds=1))
    assert isinstance(bucket, CallExpr)
    (_, width) = bucket.args
    assert isinstance(width, LiteralExpr)
    assert width.value == 36524 * 86_400_000_000 + 1


def test_expressions_are_rewritten_copied_and_sent_without_being_compared() -> None:
    expr = (A > 1) & (col("b") == A)
    assert copy.deepcopy(expr) is expr
    assert str(pickle.loads(pickle.dumps(expr))) == str(expr)
    assert str(replace(expr, A, col("z"))) == "((z > 1) and (b = z))"
    assert str(replace(expr, call("gt", A, 1), lit(True))) == "(true and (b = a))"
    assert A.alias("n") != A.alias("n")
    assert len({A, A, col("a")}) == 2


def test_huge_expressions_have_a_short_repr() -> None:
    expr: Expr = A
    for _ in range(10_000):
        expr = expr + 1
    assert len(topological(expr)) == 20_001
    assert len(repr(expr)) == 200
    assert repr(expr).endswith("…")
    assert str(expr).count("+ 1)") == 10_000
    double: Expr = A
    for _ in range(200):
        double = double + double
    assert len(repr(double)) == 200
