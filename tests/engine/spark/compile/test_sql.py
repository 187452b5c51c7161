"""Sql: full Spark SQL over plans, with positions in the user's own text."""

from __future__ import annotations

from typing import Any

import pytest

from millpond.base.errors import EvaluationError, SchemaError, SqlError
from millpond.plan.make import sql, values
from millpond.plan.types import INTEGER, LONG, STRING, Decimal, List, Struct

pytestmark = pytest.mark.spark

T = values([{"Site.Temp": 1, "k": "a"}, {"Site.Temp": 3, "k": "b"}, {"Site.Temp": 2, "k": "a"}])


def test_a_query_over_plans(run_rows: Any) -> None:
    text = """
        WITH source AS (SELECT k, "Site.Temp" AS v FROM source WHERE "Site.Temp" > 1)
        SELECT s.k, s.v, o."Site.Temp" AS other FROM source s JOIN Other o ON o."Site.Temp" = s.v
        ORDER BY v DESC
    """
    plan = sql(text, schema=Struct.of(k=STRING, v=LONG, other=LONG), source=T, Other=T)
    assert run_rows(plan) == [("b", 3, 3), ("a", 2, 2)]
    assert run_rows(plan.head(1)) == [("b", 3, 3)]


def test_views_are_gone_afterwards_and_older_ones_back(run_rows: Any, spark: Any) -> None:
    spark.range(3).createOrReplaceTempView("source")
    plan = sql("SELECT count(*) AS n FROM source", schema=Struct.of(n=LONG), source=T)
    assert run_rows(plan.union(plan)) == [(3,), (3,)]
    assert spark.table("source").columns == ["id"]
    spark.catalog.dropTempView("source")
    run_rows(plan)
    assert not spark.catalog.tableExists("source")


def test_a_table_of_the_catalog_is_only_hidden_for_a_while(run_rows: Any, spark: Any) -> None:
    spark.sql("CREATE TABLE source USING parquet AS SELECT 1 AS id")
    try:
        plan = sql("SELECT count(*) AS n FROM source", schema=Struct.of(n=LONG), source=T)
        assert run_rows(plan) == [(3,)]
        assert not spark.catalog.getTable("source").isTemporary
        spark.sql("INSERT INTO source VALUES (2)")
        assert spark.table("source").count() == 2
    finally:
        spark.catalog.dropTempView("source")
        spark.sql("DROP TABLE source")


def test_the_schema_of_a_query(engine: Any) -> None:
    inputs = {"t": Struct.of(**{"a.b": INTEGER}, l=List(STRING))}
    text = 'SELECT "a.b" AS x, sum("a.b") OVER () AS s, l, 1.5 AS d FROM t'
    assert engine.sql_schema(text, inputs) == Struct.of(
        x=INTEGER, s=LONG, l=List(STRING), d=Decimal(2, 1)
    )
    with pytest.raises(SchemaError, match="'i'"):
        engine.sql_schema("SELECT interval 1 day AS i", {})
    with pytest.raises(SchemaError, match="twice"):
        engine.sql_schema('SELECT "a.b", "a.b" FROM t', inputs)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("SELECT k,\n  nope FROM t", 2, 3),
        ("SELECT k FROM t\nJOIN nowhere USING (k)", 2, 6),
        ("SELECT k,\n\n   nofunction(k) FROM t", 3, 4),
    ],
)
def test_errors_have_positions_in_the_text(engine: Any, text: str, line: int, column: int) -> None:
    with pytest.raises(SqlError) as caught:
        engine.sql_schema(text, {"t": T.schema})
    assert (caught.value.line, caught.value.column) == (line, column)


def test_what_was_declared_is_checked(run_rows: Any) -> None:
    wider = sql("SELECT 1 AS n", schema=Struct.of(n=LONG))
    assert run_rows(wider) == [(1,)]
    with pytest.raises(SqlError, match="'n' as integer"):
        run_rows(sql("SELECT 1 AS n", schema=Struct.of(n=STRING)))
    with pytest.raises(SqlError, match="columns n"):
        run_rows(sql("SELECT 1 AS n", schema=Struct.of(m=LONG)))


def test_values_that_fail_are_evaluation_errors(run_rows: Any) -> None:
    plan = sql('SELECT 1 / ("Site.Temp" - 1) AS x FROM t', schema=Struct.of(x=LONG), t=T)
    with pytest.raises(SqlError):
        run_rows(plan)
    text = 'SELECT cast(1 / ("Site.Temp" - 1) AS bigint) AS x FROM t'
    with pytest.raises(EvaluationError):
        run_rows(sql(text, schema=Struct.of(x=LONG), t=T))
