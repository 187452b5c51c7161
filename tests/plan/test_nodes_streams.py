"""Stateful functions, window functions, SQL texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import PlanError, SchemaError, SqlError, TypeMismatchError
from millpond.plan import types as t
from millpond.plan.bind import bind
from millpond.plan.expr import col
from millpond.plan.make import sql, values
from millpond.plan.streams import (
    Sql,
    StatefulFunction,
    StatefulMapping,
    Window,
    WindowCall,
    window_type,
)
from millpond.testing.engine.parts import RunningSum

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = t.Struct.of(a=t.LONG, s=t.STRING, o=t.BOOLEAN, li=t.List(t.LONG))
P = values([], SCHEMA)
A, S, LI = (bind(col(name), SCHEMA) for name in ("a", "s", "li"))
OUT = t.Struct.of(a=t.LONG)


def test_a_stateful_function_adds_its_column() -> None:
    plan = P.stateful("total", RunningSum(5), "a", where=col("o"), partition_by=["s"])
    assert plan.schema == t.Struct((*SCHEMA.fields, t.Field("total", t.LONG)))
    assert plan.label() == "total := testing.running_sum(a) filter o per s"


def test_a_mapping_sees_the_columns_before_it() -> None:
    first = StatefulMapping("t1", RunningSum(), (A,), t.LONG)
    seen = bind(col("t1"), t.Struct((*SCHEMA.fields, t.Field("t1", t.LONG))))
    second = StatefulMapping("t2", RunningSum(), (seen,), t.LONG)
    assert StatefulFunction(P, (first, second)).schema.names[-2:] == ("t1", "t2")
    with pytest.raises(SchemaError, match="no column 't1'"):
        StatefulFunction(P, (second, first))


def test_window_functions_add_columns() -> None:
    plan = P.window("n", "row_number", order_by=["a"]).window(
        "before", "lag", "s", partition_by=["o"], order_by=[col("a").desc()], offset=2
    )
    assert plan.schema.field("n").type == t.LONG
    assert plan.schema.field("before").type == t.STRING
    assert plan.label() == "before := lag(s) over (partition by o order by a desc)"


@pytest.mark.parametrize(
    ("function", "arg", "type_"),
    [
        ("row_number", None, t.LONG),
        ("rank", None, t.LONG),
        ("dense_rank", None, t.LONG),
        ("count", None, t.LONG),
        ("count", t.STRING, t.LONG),
        ("lag", t.DATE, t.DATE),
        ("lead", t.List(t.LONG), t.List(t.LONG)),
        ("first_value", t.STRING, t.STRING),
        ("sum", t.INTEGER, t.LONG),
        ("sum", t.Decimal(10, 2), t.Decimal(20, 2)),
        ("min", t.STRING, t.STRING),
        ("mean", t.LONG, t.DOUBLE),
    ],
)
def test_types_of_window_functions(
    function: str, arg: t.DataType | None, type_: t.DataType
) -> None:
    assert window_type(function, arg) == type_


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: StatefulFunction(P, ()), PlanError, "needs at least one function"),
        (lambda: P.stateful("t", RunningSum(), "s"), TypeMismatchError, "one whole number"),
        (lambda: P.stateful("a", RunningSum(), "a"), SchemaError, "'a' stands twice"),
        (
            lambda: P.stateful("t", RunningSum(), "a", partition_by=["li"]),
            TypeMismatchError,
            "li is a list<long>, not a key",
        ),
        (
            lambda: P.stateful("t", RunningSum(), "a", where=col("a")),
            TypeMismatchError,
            "a predicate is boolean",
        ),
        (
            lambda: StatefulFunction(P, (StatefulMapping("t", RunningSum(), (A,), t.STRING),)),
            TypeMismatchError,
            "testing.running_sum gives long, not string",
        ),
        (
            lambda: StatefulFunction(P, (StatefulMapping("t", RunningSum(), (A,), t.LONG, A),)),
            TypeMismatchError,
            "a filter is boolean, not long",
        ),
        (lambda: Window(P, ()), PlanError, "needs at least one function"),
        (lambda: P.window("w", "median", "a"), PlanError, "unknown window function 'median'"),
        (lambda: WindowCall("w", "median", t.LONG), PlanError, "unknown window function"),
        (lambda: WindowCall("w", "lag", t.LONG), PlanError, "lag needs an argument"),
        (lambda: WindowCall("w", "rank", t.LONG, A), PlanError, "rank takes no argument"),
        (lambda: P.window("w", "lag", "a", offset=-1), PlanError, "an offset is not negative: -1"),
        (lambda: P.window("w", "sum", "a", rows=(2, 1)), PlanError, "from 2 to 1 is empty"),
        (lambda: P.window("w", "sum", "s"), TypeMismatchError, "sum takes numbers, not string"),
        (lambda: P.window("w", "mean", "s"), TypeMismatchError, "mean takes numbers, not string"),
        (lambda: P.window("w", "min", "li"), TypeMismatchError, "min takes values that have"),
        (
            lambda: P.window("w", "rank", order_by=["li"]),
            TypeMismatchError,
            "li is a list<long>, not a key",
        ),
        (
            lambda: P.window("w", "rank", partition_by=["li"]),
            TypeMismatchError,
            "li is a list<long>, not a key",
        ),
        (lambda: P.window("a", "rank", order_by=["a"]), SchemaError, "'a' stands twice"),
        (
            lambda: Window(P, (WindowCall("w", "sum", t.DOUBLE, A),)),
            TypeMismatchError,
            "sum gives long, not double",
        ),
        (
            lambda: Sql("SELECT 1", ("t", "t"), (P, P), OUT),
            PlanError,
            "one name of its own",
        ),
        (lambda: Sql("SELECT 1", ("t",), (), OUT), PlanError, "one name of its own"),
        (lambda: Sql("SELECT 1", ("a\nb",), (P,), OUT), PlanError, "can't name an input"),
        (lambda: sql("SELECT FROM", schema=OUT, t=P), SqlError, "can't be read"),
        (lambda: sql("DROP TABLE t", schema=OUT, t=P), SqlError, "DROP is not a query"),
    ],
)
def test_nodes_that_can_not_be(
    build: Callable[[], object], error: type[PlanError], message: str
) -> None:
    with pytest.raises(error) as raised:
        build()
    assert message in raised.value.message


def test_a_query_has_named_inputs() -> None:
    plan = sql("SELECT a\n  FROM t", schema=OUT, t=P, u=P)
    assert isinstance(plan, Sql)
    assert plan.schema == OUT
    assert plan.names == ("t", "u")
    assert plan.children == (P, P)
    assert plan.label() == "(t, u) SELECT a FROM t"
    assert sql("SELECT 1 AS a", schema=OUT).children == ()
