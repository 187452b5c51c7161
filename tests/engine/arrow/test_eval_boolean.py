"""Three-valued logic, conditions, and that what is not reached can't fail."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from tests.engine.arrow.columns import value_of

from millpond.base.errors import EvaluationError
from millpond.engine.arrow.eval import evaluate, evaluate_mask
from millpond.plan.bind import bind
from millpond.plan.expr import Expr, call, col, if_else, lit, path
from millpond.plan.types import BOOLEAN, LONG, STRING, List, Map, Struct

THREE: tuple[Any, ...] = (True, False, None)


def kleene_and(*values: Any) -> Any:
    return False if False in values else None if None in values else True


def kleene_or(*values: Any) -> Any:
    return True if True in values else None if None in values else False


@pytest.mark.parametrize(("name", "truth"), [("and", kleene_and), ("or", kleene_or)])
def test_junctions_of_three(name: str, truth: Any) -> None:
    rows = list(itertools.product(THREE, repeat=3))
    columns = {key: (BOOLEAN, [row[i] for row in rows]) for i, key in enumerate("abc")}
    found = value_of(call(name, col("a"), col("b"), col("c")), **columns)
    assert found == [truth(*row) for row in rows]
    for literal in THREE:
        found = value_of(call(name, col("a"), lit(literal), col("c")), **columns)
        assert found == [truth(row[0], literal, row[2]) for row in rows]
        found = value_of(call(name, lit(literal), col("b")), **columns)
        assert found == [truth(literal, row[1]) for row in rows]
    assert value_of(call(name, col("a")), **columns) == [row[0] for row in rows]


def test_not_keeps_null() -> None:
    assert value_of(~col("a"), a=(BOOLEAN, THREE)) == [False, True, None]


def fails_unless(ok: Expr) -> Expr:
    """A predicate that is an error where `ok` is false."""
    return lit(1).div(if_else(ok, 1, 0)) == 1


def test_a_decided_conjunction_does_not_look_further() -> None:
    safe = (col("a") != 0) & (lit(10).div(col("a")) > 3)
    assert value_of(safe, a=(LONG, [0, 1, 5])) == [False, True, False]
    assert value_of((col("a") == 0) | (lit(10).div(col("a")) > 3), a=(LONG, [0, 1, 5])) == [
        True,
        True,
        False,
    ]
    assert value_of(lit(False) & (lit(1).div(0) == 1), a=(LONG, [1])) == [False]


def test_null_does_not_decide_so_the_error_is_reached() -> None:
    with pytest.raises(EvaluationError):
        value_of((col("b")) & (lit(10).div(col("a")) > 3), a=(LONG, [0]), b=(BOOLEAN, [None]))


def test_null_and_later_parts_combine() -> None:
    later = lit(10).div(col("a")) > 3
    found = value_of(
        col("b") & later, a=(LONG, [0, 1, 5, 1]), b=(BOOLEAN, [False, None, None, True])
    )
    assert found == [False, None, False, True]
    found = value_of(
        col("b") | later, a=(LONG, [0, 1, 5, 5]), b=(BOOLEAN, [True, None, None, False])
    )
    assert found == [True, True, None, False]


def test_if_else_computes_a_branch_only_where_it_is_taken() -> None:
    guarded = if_else(col("a") == 0, -1, lit(10).div(col("a")))
    assert value_of(guarded, a=(LONG, [0, 5, None])) == [-1, 2, None]
    texts = if_else(col("ok"), col("s").cast(LONG), -1)
    found = value_of(texts, ok=(BOOLEAN, [True, False, None]), s=(STRING, ["7", "x", "y"]))
    assert found == [7, -1, -1]


def test_coalesce_goes_on_only_where_it_has_nulls() -> None:
    expr = col("a").coalesce(lit(10).div(col("b")), 99)
    found = value_of(expr, a=(LONG, [1, None, None]), b=(LONG, [0, 5, None]))
    assert found == [1, 2, 99]
    with pytest.raises(EvaluationError, match="division by zero"):
        value_of(expr, a=(LONG, [None]), b=(LONG, [0]))


def test_branches_nest_and_share() -> None:
    shared = lit(100).div(col("a"))
    expr = if_else(
        col("a") != 0,
        if_else(shared > 10, shared, -shared),
        if_else(col("b") != 0, lit(100).div(col("b")), 0),
    )
    found = value_of(expr, a=(LONG, [0, 5, 50, 0]), b=(LONG, [0, 0, 0, 4]))
    assert found == [0, 20, -2, 25]


NESTED = Struct.of(x=LONG, l=List(STRING))


@pytest.mark.parametrize(
    ("type_", "one", "two"),
    [
        (STRING, "a", "bb"),
        (List(LONG), [1, None], []),
        (NESTED, {"x": 1, "l": ["a"]}, {"x": None, "l": None}),
        (List(NESTED), [{"x": 1, "l": []}], [None]),
        (Map(STRING, LONG), [("a", 1)], []),
    ],
    ids=str,
)
def test_conditions_carry_every_type(type_: Any, one: Any, two: Any) -> None:
    columns = {
        "c": (BOOLEAN, [True, False, None, True]),
        "a": (type_, [one, one, one, None]),
        "b": (type_, [two, two, None, two]),
    }
    assert value_of(if_else(col("c"), col("a"), col("b")), **columns) == [one, two, None, None]
    risky = fails_unless(col("c").same_as(True) | True)
    assert value_of(if_else(col("c") & risky, col("a"), col("b")), **columns)[:2] == [one, two]
    assert value_of(col("a").coalesce(col("b")), **columns) == [one, one, one, two]


def test_a_mask_has_no_nulls() -> None:
    schema = Struct.of(a=LONG)
    batch = pa.RecordBatch.from_pydict({"a": pa.array([1, None, 3], pa.int64())})
    mask = evaluate_mask(bind(col("a") > 1, schema), batch)
    assert mask.to_pylist() == [False, False, True]
    assert evaluate_mask(bind(lit(None, BOOLEAN), schema), batch).to_pylist() == [False] * 3


def test_no_rows_give_no_errors() -> None:
    schema = Struct.of(a=LONG, l=List(LONG))
    empty = pa.RecordBatch.from_pydict(
        {"a": pa.array([], pa.int64()), "l": pa.array([], pa.list_(pa.int64()))}
    )
    for expr in (lit(1).div(0), col("a") / 0, path("l").any(lit(1).div(0) == 1)):
        assert len(evaluate(bind(expr, schema), empty)) == 0


def test_elements_that_are_not_there_give_no_errors() -> None:
    expr = path("l").any(lit(1).div(0) == 1)
    assert value_of(expr, l=(List(LONG), [[], None, []])) == [False, None, False]
