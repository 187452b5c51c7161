from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import EngineError, EvaluationError, PlanError, SourceError, SqlError
from millpond.engine.spark.errors import first_line, translate

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


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
    ("expression", "message"),
    [
        ("1 / (id - 5)", "Division by zero"),
        ("id % (id - 5)", "by zero"),
        ("cast(id + 2147483640 AS int)", "overflow"),
        ("cast(id AS int) + 2147483640", "overflow"),
        ("id + 9223372036854775800", "overflow"),
        ("cast(concat('x', id) AS int)", "cannot be cast"),
        ("array(1, 2)[id]", "out of bounds"),
        ("element_at(array(1, 2), cast(id AS int) + 1)", "out of bounds"),
        ("cast(concat('2020-13-', id) AS date)", "cannot be cast"),
        ("cast(id * 1000 AS decimal(3, 0))", "cannot be represented"),
        ("raise_error(concat('no ', id % 1))", "no 0"),
    ],
)
def test_a_value_is_at_fault(spark: SparkSession, expression: str, message: str) -> None:
    error = translate(fails(spark.range(0, 10, 1, 2).selectExpr(expression)))
    assert isinstance(error, EvaluationError)
    assert isinstance(error, ArithmeticError)
    assert message in error.message
    assert "ansi" not in error.message
    assert "\n" not in error.message


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
