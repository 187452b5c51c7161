"""The walk itself: deep chains, shared parts, errors that name the expression, every function."""

from __future__ import annotations

import functools
import re
from typing import Any

import pyarrow as pa
import pytest
from tests.engine.arrow.columns import value_of

from millpond.base.errors import EvaluationError
from millpond.engine.arrow.eval import ARROW_FUNCTIONS, evaluate, evaluate_mask
from millpond.plan.arrow import to_arrow, to_arrow_schema
from millpond.plan.bind import bind
from millpond.plan.expr import Expr, call, col, if_else, lit, path
from millpond.plan.functions import FUNCTIONS
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    NULL,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    Map,
    Struct,
)

DEPTH = 5_000


def test_every_function_is_there() -> None:
    assert frozenset(FUNCTIONS) == ARROW_FUNCTIONS


def nested(step: Any, start: Expr) -> Expr:
    return functools.reduce(lambda inner, _: step(inner), range(DEPTH), start)


@pytest.mark.parametrize(
    ("step", "start", "wanted"),
    [
        (lambda x: x + 1, col("a"), [DEPTH + 1, DEPTH]),
        (lambda x: ~x, col("a") == 1, [True, False]),
        (lambda x: if_else(col("a") == 1, x, 7), col("a"), [1, 7]),
        (lambda x: if_else(col("a") == 99, 7, x), lit(10).div(col("a") + 1), [5, 10]),
        (
            lambda x: call("and", call("or", x, col("a") == 7), col("a") != 0),
            col("a") == 1,
            [True, False],
        ),
        (lambda x: x.coalesce(3), lit(None, LONG), [3, 3]),
        (lambda x: x.cast(STRING).cast(LONG), col("a"), [1, 0]),
        (lambda x: x.concat("x").substr(0, 1), col("a").cast(STRING), ["1", "0"]),
    ],
    ids=["add", "not", "if_else", "else", "and-or", "coalesce", "cast", "concat"],
)
def test_a_deep_chain(step: Any, start: Expr, wanted: list[Any]) -> None:
    batch = pa.RecordBatch.from_pydict({"a": pa.array([1, 0], pa.int64())})
    bound = bind(nested(step, start), Struct.of(a=LONG))
    assert evaluate(bound, batch).to_pylist() == wanted


def test_a_wide_disjunction() -> None:
    expr = functools.reduce(lambda left, n: left | (col("a") == n), range(1, 3000), col("a") == 0)
    assert value_of(expr, a=(LONG, [2999, 3000, None])) == [True, False, None]


def test_shared_parts_are_computed_once() -> None:
    """Computed anew each time, the last part would take 2 to the 40th additions."""
    part: Expr = col("a") * 1
    for _ in range(40):
        part = part + part
    assert value_of(part, a=(LONG, [1, None])) == [1 << 40, None]


def test_equal_parts_in_conditions_agree() -> None:
    costly = col("s").cast(LONG)
    expr = if_else((col("s") != "x") & (costly > 1) & (costly < 5), costly * costly, -1)
    assert value_of(expr, s=(STRING, ["2", "x", "9", "1", "4"])) == [4, -1, -1, -1, 16]


ALL_TYPES: list[DataType] = [
    *(NULL, BOOLEAN, BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, Decimal(38, 38), STRING, BINARY),
    *(DATE, TIMESTAMP, TIMESTAMP_NTZ, List(LONG), Struct.of(x=LONG), Map(STRING, LONG)),
    List(Struct.of(x=List(STRING))),
]


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_null_literals_and_columns_of_every_type(type_: DataType) -> None:
    assert value_of(lit(None, type_), a=(LONG, [1, 2])) == [None, None]
    assert value_of(col("a"), a=(type_, [None, None])) == [None, None]
    assert value_of(col("a").coalesce(lit(None, type_)), a=(type_, [None])) == [None]
    found = value_of(
        if_else(col("c"), col("a"), lit(None, type_)),
        c=(BOOLEAN, [True, False]),
        a=(type_, [None, None]),
    )
    assert found == [None, None]


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_an_empty_batch_gives_an_empty_column(type_: DataType) -> None:
    schema = Struct.of(a=type_)
    batch = pa.RecordBatch.from_pylist([], schema=to_arrow_schema(schema))
    for expr in (col("a"), col("a").is_null(), lit(1), lit(1).div(0)):
        bound = bind(expr, schema)
        found = evaluate(bound, batch)
        assert len(found) == 0
        assert found.type == to_arrow(bound.type)
    assert len(evaluate_mask(bind(col("a").is_null(), schema), batch)) == 0


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (col("a") + 1, r"^9223372036854775807 and 1 overflow long in \(a \+ 1\)$"),
        (
            col("a") / (col("b") - 5),
            r"^division by zero in \(cast\(a as double\) / cast\(\(b - 5\) as",
        ),
        (col("s").cast(INTEGER), r"^'two' is not a integer in cast\(s as integer\)$"),
        (path("l").any(col("x").cast(LONG) > 1), r"^'q' is not a long in cast\(x as long\)$"),
        (lit(1).div(0) + col("a"), r"^division by zero in \(1 div 0\)$"),
        (col("s").cast(DATE), r"^'two' is not a date in"),
    ],
    ids=str,
)
def test_an_error_names_the_value_and_the_expression(expr: Expr, message: str) -> None:
    items = List(Struct.of(x=STRING))
    with pytest.raises(EvaluationError) as caught:
        value_of(
            expr,
            a=(LONG, [None, (1 << 63) - 1]),
            b=(LONG, [None, 5]),
            s=(STRING, ["1", "two"])
            if "date" not in str(expr)
            else (STRING, ["2024-01-01", "two"]),
            l=(items, [None, [{"x": "q"}]]),
        )
    assert re.search(message, caught.value.message)
    assert caught.value.hint
    assert caught.value.engine == "arrow"


def test_a_long_expression_is_cut_in_its_error() -> None:
    expr: Expr = col("a")
    for _ in range(500):
        expr = expr + 1
    with pytest.raises(EvaluationError) as caught:
        value_of(expr, a=(LONG, [(1 << 63) - 300]))
    assert len(caught.value.message) < 500


def test_timestamps_that_do_not_fit_microseconds_are_an_evaluation_error() -> None:
    far = pa.array([1 << 62], pa.timestamp("s", tz="UTC"))
    batch = pa.RecordBatch.from_arrays([far], ["t"])
    with pytest.raises(EvaluationError):
        evaluate(bind(col("t"), Struct.of(t=TIMESTAMP)), batch)
