"""The fluent face of a plan: each method is one node, bound against the schema it stands on."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from millpond.base.errors import PlanError, SchemaError, TypeMismatchError
from millpond.plan import aggregates as agg
from millpond.plan import types as t
from millpond.plan.expr import col, lit
from millpond.plan.make import list_files, sql, stored, values

P = values([{"a": 1, "b": "x", "c": 1.5}])


def test_with_columns_replaces_in_place_and_adds_at_the_end() -> None:
    plan = P.with_columns(b=col("a") + 1, d=lit("x"))
    assert plan.schema == t.Struct.of(a=t.LONG, b=t.LONG, c=t.DOUBLE, d=t.STRING)


def test_dropping_and_renaming() -> None:
    assert P.drop("b").schema.names == ("a", "c")
    assert P.rename(a="z", c="a").schema.names == ("z", "b", "a")
    assert P.rename({"a": "z"}, c="a") == P.rename(a="z", c="a")
    with pytest.raises(SchemaError, match="no column 'q'"):
        P.drop("q")
    with pytest.raises(SchemaError, match="no column 'q'"):
        P.rename(q="z")
    with pytest.raises(SchemaError, match="'b' stands twice"):
        P.rename(a="b")


def test_several_predicates_hold_together() -> None:
    assert P.filter(col("a") > 0, col("b") == "x") == P.filter((col("a") > 0) & (col("b") == "x"))
    assert P.filter(col("a") > 0, None).to_pylist(engine="arrow") == []  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="at least one predicate"):
        P.filter()


def test_distinct_rows_come_once_by_their_values() -> None:
    nan = float("nan")
    rows = [(2, nan), (None, 1.0), (2, nan), (1, -0.0), (None, 1.0), (1, 0.0)]
    plan = values([{"a": a, "b": b} for a, b in rows])
    found = plan.distinct().to_pylist(engine="arrow")
    assert str(found) == str([{"a": 1, "b": 0.0}, {"a": 2, "b": nan}, {"a": None, "b": 1.0}])
    assert plan.distinct("a").to_pylist(engine="arrow") == [{"a": 1}, {"a": 2}, {"a": None}]
    odd = plan.distinct((col("a") % 2).alias("odd"))
    assert odd.to_pylist(engine="arrow") == [{"odd": 0}, {"odd": 1}, {"odd": None}]
    with pytest.raises(TypeMismatchError, match="can't be grouped by li"):
        values([{"li": [1]}]).distinct()


def test_columns_are_given_one_by_one() -> None:
    with pytest.raises(PlanError, match="not a list") as caught:
        P.select(["a", "b"])  # type: ignore[arg-type]
    assert "select('a', 'b')" in str(caught.value.hint)
    with pytest.raises(PlanError, match="not a list"):
        P.sort(["a"])  # type: ignore[arg-type]


def test_keys_of_an_aggregation_are_given_alone_or_in_a_list() -> None:
    one, two = P.aggregate("a", n=agg.count()), P.aggregate(["a"], n=agg.count())
    assert one == two
    named = P.aggregate((col("a") % 2).alias("odd"), n=agg.count())
    assert named.schema.names == ("odd", "n")
    with pytest.raises(PlanError, match="needs a name"):
        P.aggregate(col("a") % 2, n=agg.count())


def test_errors_come_from_the_step_that_is_wrong() -> None:
    narrow = P.select("a")
    with pytest.raises(SchemaError, match="there is no column 'b'"):
        narrow.filter(col("b") == "x")


def test_a_plan_is_an_arrow_stream_that_keeps_its_schema() -> None:
    with pytest.raises(TypeMismatchError, match="a plan gives its own schema"):
        P.__arrow_c_stream__(object())


class TestValues:
    def test_of_dictionaries(self) -> None:
        plan = values([{"a": 1}, {"b": "x", "a": None}])
        assert plan.schema == t.Struct.of(a=t.LONG, b=t.STRING)
        assert _rows(plan) == [{"a": 1, "b": None}, {"a": None, "b": "x"}]

    def test_of_empty_dictionaries(self) -> None:
        for plan in (values([{}, {}]), values([{}, {}], t.Struct())):
            assert plan.schema == t.Struct()
            assert plan.to_pylist(engine="arrow") == [{}, {}]

    def test_of_dictionaries_with_a_schema(self) -> None:
        schema = t.Struct.of(a=t.INTEGER, b=t.STRING)
        plan = values([{"a": 1}, {"b": "x"}], schema)
        assert plan.schema == schema
        assert _rows(plan) == [{"a": 1, "b": None}, {"a": None, "b": "x"}]

    def test_of_arrow(self) -> None:
        table = pa.table({"a": [1, 2]})
        assert values(table) == values(table.to_batches()[0]) == values([{"a": 1}, {"a": 2}])
        assert values(_Stream(table)) == values(table)
        assert values(table, t.Struct.of(a=t.INTEGER)).schema == t.Struct.of(a=t.INTEGER)

    @pytest.mark.parametrize(
        ("rows", "schema", "message"),
        [
            ([], None, "no rows and no schema"),
            ([1], None, "row 0 is a int, not a dictionary"),
            ([{"a": 1}, {"a": "x"}], None, "values of different kinds"),
            ([{"a": 2**70}], None, "do not make a table"),
            ([{"a": "\ud800"}], None, "do not make a table"),
            ([{"a": NotImplemented}], None, "do not make a table"),
            ([{"a": "x"}], t.Struct.of(a=t.LONG), "do not make a table"),
            ([{"a": 300}], t.Struct.of(a=t.BYTE), "do not make a table"),
            ([{"a": 1}, {"A": 1}], t.Struct.of(a=t.LONG), "row 1 has 'A', the schema has not"),
            (pa.table({"a": [300]}), t.Struct.of(a=t.BYTE), "'a' is int64 and does not fit"),
            (pa.table({"b": [1]}), t.Struct.of(a=t.LONG), "does not fit struct<a: long>"),
        ],
        ids=str,
    )
    def test_that_can_not_be(self, rows: Any, schema: t.Struct | None, message: str) -> None:
        with pytest.raises(SchemaError, match=message):
            values(rows, schema)


class _Stream:
    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def _rows(plan: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plan.data.to_pylist()
    return found


def test_other_beginnings() -> None:
    assert list_files("/a").kind == "ListFiles"
    assert stored("/a", t.Struct()).kind == "Stored"
    assert sql("SELECT 1 AS a", schema=t.Struct.of(a=t.INTEGER)).kind == "Sql"
