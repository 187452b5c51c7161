"""What people write by habit: plain values for expressions, one name for several, type names."""

from __future__ import annotations

from typing import Any

import pytest

from millpond.base.errors import PlanError, SchemaError, SqlError, TypeMismatchError
from millpond.plan import aggregates as agg
from millpond.plan.expr import Named, SortKey, col, lit
from millpond.plan.make import sql, values
from millpond.plan.types import LONG, STRING, Struct

ROWS = values([{"a": 1, "b": "q", "li": [1]}, {"a": 2, "b": "r", "li": []}])


def rows(plan: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plan.to_pylist(engine="arrow")
    return found


def test_a_string_is_a_column_in_every_argument_of_a_plan() -> None:
    assert rows(ROWS.select(place="b").head(1)) == [{"place": "q"}]
    assert rows(ROWS.with_columns(place="b", a="b").select("place", "a").head(1)) == [
        {"place": "q", "a": "q"}
    ]
    assert rows(ROWS.select(Named("place", "b")).head(1)) == [{"place": "q"}]  # type: ignore[arg-type]
    assert rows(ROWS.sort(SortKey("a", descending=True)).select("a").head(1)) == [{"a": 2}]  # type: ignore[arg-type]
    assert rows(ROWS.aggregate("b", n=agg.max("a"))) == [{"b": "q", "n": 1}, {"b": "r", "n": 2}]
    joined = ROWS.select("a").join(ROWS.select(x="a", y="b"), on=[("a", "x")])
    assert rows(joined.select("y")) == [{"y": "q"}, {"y": "r"}]
    window = ROWS.window("n", "max", "a", partition_by="b", order_by="a")
    assert str(window) == str(
        ROWS.window("n", "max", col("a"), partition_by=col("b"), order_by=col("a"))
    )


def test_a_constant_is_a_literal() -> None:
    plan = ROWS.select(text=lit("b"), number=3).head(1)  # type: ignore[arg-type]
    assert rows(plan) == [{"text": "b", "number": 3}]
    assert rows(ROWS.with_columns(b=lit("b")).select("b").head(1)) == [{"b": "b"}]
    for build in (ROWS.select, ROWS.with_columns):
        with pytest.raises(SchemaError, match="no column 'metres'") as error:
            build(unit="metres")
        assert "lit('metres')" in str(error.value.hint)


@pytest.mark.parametrize(
    "build",
    [
        lambda: ROWS.sort(1),  # type: ignore[arg-type]
        lambda: ROWS.top_k(1, 1),  # type: ignore[arg-type]
        lambda: ROWS.join(ROWS, on=[("a", 1)]),  # type: ignore[list-item]
        lambda: ROWS.window("n", "row_number", partition_by=[0], order_by="a"),  # type: ignore[list-item]
        lambda: ROWS.window("n", "row_number", order_by=[0]),  # type: ignore[list-item]
    ],
)
def test_a_bare_constant_is_not_a_key(build: Any) -> None:
    with pytest.raises(TypeMismatchError, match="a column's name or an expression") as error:
        build()
    assert "lit(" in str(error.value.hint)


def test_plain_values_are_literals() -> None:
    assert len(rows(ROWS.filter(True))) == 2  # type: ignore[arg-type]
    assert rows(ROWS.filter(None)) == []  # type: ignore[arg-type]
    with pytest.raises(TypeMismatchError):
        ROWS.filter(col("li").any("H"))  # type: ignore[arg-type]


def test_a_name_is_not_a_sequence_of_letters() -> None:
    with pytest.raises(SchemaError, match="'ab'"):
        ROWS.window("n", "row_number", partition_by="ab", order_by="a")
    plan = ROWS.window("n", "row_number", partition_by="a", order_by="b")
    assert str(plan) == str(ROWS.window("n", "row_number", partition_by=["a"], order_by=["b"]))


def test_types_by_name() -> None:
    assert ROWS.select(x=col("a").cast("string")).schema == Struct.of(x=STRING)
    with pytest.raises(SchemaError, match="strnig"):
        col("a").cast("strnig")


def test_a_window_function_without_its_argument() -> None:
    with pytest.raises(PlanError, match="sum needs an argument"):
        ROWS.window("n", "sum")


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda p: p.union(5), r"union\(\) takes a plan, not 5"),
        (lambda p: p.join("V", on="a"), r"join\(\) takes a plan, not 'V'"),
        (lambda p: p.take(2), "a list of positions, not 2"),
        (lambda p: p.aggregate("a", n="b"), "is not a measure"),
    ],
)
def test_the_wrong_kind_of_thing_is_named(build: Any, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        build(ROWS)


def test_fractions_are_not_cut_off() -> None:
    with pytest.raises(SchemaError, match=r"1\.5"):
        values([{"a": 1.5}], Struct.of(a=LONG))
    assert rows(values([{"a": 2.0}], Struct.of(a=LONG))) == [{"a": 2}]


@pytest.mark.parametrize(
    "text",
    [
        "insert overwrite directory '/nowhere' using csv select 1",
        "create temporary view leak as select 1",
        "set spark.sql.ansi.enabled=false",
        "with x as (select 1) insert into t select * from x",
        "drop table t",
        "select 1; select 2",
    ],
)
def test_a_command_never_reaches_spark(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from millpond.engine.spark import SparkEngine

    asked = property(lambda _: pytest.fail("Spark was asked"))
    monkeypatch.setattr(SparkEngine, "session", asked)
    with pytest.raises(SqlError):
        sql(text)
    with pytest.raises(SqlError):
        sql(text, schema={"x": "long"})
