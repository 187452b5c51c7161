from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import EngineError, EvaluationError, PlanError, SourceError, SqlError
from millpond.engine.arrow import ArrowEngine
from millpond.engine.spark import SparkEngine
from millpond.engine.spark.errors import first_line, translate
from millpond.plan import aggregates as agg
from millpond.plan.expr import col
from millpond.plan.make import values
from millpond.plan.types import BYTE, DATE, DOUBLE, INTEGER, LONG, STRING, Decimal, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millpond.plan.node import Plan


def fails(df: DataFrame) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any; what it becomes is the test
        df.collect()
    return caught.value


def sql_fails(spark: SparkSession, text: str) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        spark.sql(text)
    return caught.value


def test_one_of_ours_stays() -> None:
    ours = PlanError("no")
    assert translate(ours) is ours


def test_anything_else_is_an_engine_error_with_one_line() -> None:
    text = "java.lang.IllegalStateException: the pond is dry\n\tat a.b.C.d(C.java:1)\n\tat e.F"
    error = translate(RuntimeError(text))
    assert type(error) is EngineError
    assert error.message == "the pond is dry"
    assert first_line(RuntimeError("")) == "RuntimeError"


def test_out_of_memory_says_what_to_do() -> None:
    error = translate(RuntimeError("java.lang.OutOfMemoryError: Java heap space\n\tat x"))
    assert "spark.driver_memory" in str(error)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("expression", "message", "hint"),
    [
        ("1 / (id - 5)", "division by zero in 1 / (id - 5) (line 1, column 1)", "try_divide"),
        ("2 + id % (id - 5)", "division by zero in id % (id - 5) (line 1, column 5)", "nullif"),
        ("cast(id + 2147483640 AS int)", "'2147483648' is not a integer", "cast"),
        ("cast(id AS int) + 2147483640", "overflow in cast(id AS int) + 2147483640", "wider"),
        ("cast(id AS tinyint) + 127Y", "1 and 127 overflow", "wider"),
        ("id + 9223372036854775800", "overflow in id + 9223372036854775800", "wider"),
        ("cast(concat('x', id) AS int)", "'x0' is not a integer in cast(concat(", "try_cast"),
        ("array(1, 2)[id]", "The index 2 is out of bounds. The array has 2 elements in", "get"),
        ("element_at(array(1, 2), cast(id AS int) + 1)", "out of bounds", "try_element_at"),
        ("cast(concat('2020-13-', id) AS date)", "'2020-13-0' is not a date in cast", "try_cast"),
        ("cast(id * 1000 AS decimal(3, 0))", "'1000' is not a decimal(3,0) in cast", "try_cast"),
        ("raise_error(concat('no ', id % 1))", "no 0", ""),
    ],
)
def test_a_value_is_at_fault(spark: SparkSession, expression: str, message: str, hint: str) -> None:
    error = translate(fails(spark.range(0, 10, 1, 1).selectExpr(expression)))
    assert isinstance(error, EvaluationError)
    assert isinstance(error, ArithmeticError)
    assert message in error.message
    assert hint in (error.hint or "")
    for advice in ("ansi", "try_", "NULL", "\n"):
        assert advice not in error.message


ROWS = values(
    [{"a": 2**63 - 1, "z": 0, "s": "x", "t": 100, "d": 1e300}],
    Struct.of(a=LONG, z=LONG, s=STRING, t=BYTE, d=DOUBLE),
)


@pytest.mark.spark
@pytest.mark.parametrize(
    "plan",
    [
        ROWS.select(x=1 + col("a") / col("z")),
        ROWS.select(x=col("a") % (col("z") * 2)),
        ROWS.filter(col("a").div(col("z")) > 1),
        ROWS.select(x=col("s").cast(LONG)),
        ROWS.select(x=col("s").cast(DATE)),
        ROWS.select(x=col("a").cast(Decimal(3, 0))),
        ROWS.select(x=col("a").cast(BYTE)),
        ROWS.select(x=col("d").cast(INTEGER)),
        ROWS.select(x=col("d").cast(LONG)),
        ROWS.aggregate(n=agg.max(col("a") % 0)),
    ],
)
def test_both_engines_name_the_expression_and_hint_alike(spark: SparkSession, plan: Plan) -> None:
    told = []
    for engine in (ArrowEngine(), SparkEngine(spark)):
        with pytest.raises(EvaluationError) as caught:
            list(engine.execute(plan))
        told.append((caught.value.message, caught.value.hint))
    assert told[0] == told[1]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (ROWS.select(x=col("a") + 1), "overflow in (a + 1)"),
        (ROWS.select(x=-(col("a") * 2)), "overflow in (a * 2)"),
        (ROWS.select(x=col("t") + col("t")), "100 and 100 overflow in (t + t)"),
        (ROWS.union(ROWS).aggregate(n=agg.sum("a")), "overflow in n := sum(a)"),
        (
            ROWS.union(ROWS).aggregate(n=agg.sum("a"), m=agg.sum("z")),
            "overflow in one of n := sum(a); m := sum(z)",
        ),
    ],
)
def test_an_overflow_names_its_expression(spark: SparkSession, plan: Plan, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        list(SparkEngine(spark).execute(plan))
    assert caught.value.message == message
    assert caught.value.hint is not None
    assert "try_" not in caught.value.hint


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("SELEC 1", 1, 1),
        ("SELECT 1\n  FROM range(3) WHERE (", 2, 23),
        ("SELECT\n  nope FROM range(1)", 2, 3),
        ("SELECT * FROM missing", 1, 15),
        ("SELECT upper(1, 2)", 1, 8),
        ("SELECT id, sum(id) FROM range(3)", None, None),
    ],
)
def test_a_query_is_at_fault(
    spark: SparkSession, text: str, line: int | None, column: int | None
) -> None:
    error = translate(sql_fails(spark, text))
    assert isinstance(error, SqlError)
    if line is not None:
        assert (error.line, error.column) == (line, column)
    assert "SQLSTATE" not in str(error)
    assert len(str(error).splitlines()) <= 2


@pytest.mark.spark
def test_a_missing_path(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "gone.parquet"
    with pytest.raises(Exception) as caught:  # noqa: PT011
        spark.read.parquet(str(path))
    error = translate(caught.value)
    assert isinstance(error, SourceError)
    assert error.path == str(path)


@pytest.mark.spark
def test_a_file_that_goes_away(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "with space.parquet"
    spark.range(3).coalesce(1).write.parquet(str(path))
    df = spark.read.schema("id long").parquet(str(path))
    gone = next(path.glob("*.parquet"))
    gone.unlink()
    error = translate(fails(df))
    assert isinstance(error, SourceError)
    assert error.path == str(gone)


@pytest.mark.spark
def test_a_corrupt_file(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"this is not a Parquet file at all")
    error = translate(fails(spark.read.schema("a int").parquet(str(path))))
    assert isinstance(error, SourceError)
    assert error.path == str(path)
    assert "complete" in str(error)


@pytest.mark.spark
def test_an_error_in_python_code(spark: SparkSession) -> None:
    def broken(batches: object) -> object:
        raise ValueError("the row has no water")

    error = translate(fails(spark.range(2).mapInArrow(broken, "id long")))  # type: ignore[arg-type]
    assert isinstance(error, EngineError)
    assert "the row has no water" in error.message


@pytest.mark.spark
def test_nothing_is_printed(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    sql_fails(spark, "SELECT nope FROM range(1)")
    fails(spark.sql("SELECT 1 / (id - 1) FROM range(3)"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.spark
def test_a_table_that_is_no_input_is_told_without_advice_about_catalogs(
    spark: SparkSession,
) -> None:
    error = translate(sql_fails(spark, "SELECT 1\nFROM other"))
    assert isinstance(error, SqlError)
    assert error.message == "there is no table `other` (line 2, column 6)"
    assert (error.line, error.column) == (2, 6)
    assert "source" in (error.hint or "")
