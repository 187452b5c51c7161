"""`spark.read.format("pond")`: found by Spark itself, read in its workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from tests.provider.ponds import append, at, make

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def place(tmp_path: Path) -> str:
    pond = mp.create(tmp_path / "pond")
    for day in range(3):
        append(pond, "/s", [{"timestamp": at(24 * day + h), "x y": h * 1.5} for h in range(24)])
    make(pond, "/j", "timeseries-join", inputs=[{"pattern": "/s", "scope": "S"}])
    return pond.location


def test_rows(spark: SparkSession, place: str) -> None:
    reader = spark.read.format("pond").option("pond", place)
    frame = reader.load("/s")
    assert frame.columns == ["timestamp", "x y"]
    assert frame.count() == 72
    assert frame.agg({"x y": "max"}).collect()[0][0] == 34.5
    joined = reader.load("/j").toArrow().sort_by("timestamp")
    assert joined == mp.open(place)["/j"].to_arrow().sort_by("timestamp").cast(joined.schema)


def test_times_and_the_past(spark: SparkSession, place: str) -> None:
    reader = spark.read.format("pond").option("pond", place)
    some = reader.option("timeStart", at(30).isoformat()).option("timeEnd", at(50).isoformat())
    assert some.load("/s").count() == 21
    assert (
        spark.read.format("pond").option("pond", place).option("asOf", "1").load("/s").count() == 24
    )


def test_mistakes(spark: SparkSession, place: str) -> None:
    for options, message in (
        ({"pond": place}, "there is nothing at /none"),
        ({"pond": place, "speed": "1"}, "no option 'speed'"),
        ({}, "it is not said which pond is meant"),
    ):
        with pytest.raises(PySparkException, match=message):
            spark.read.format("pond").options(**options).load("/none").count()


def test_the_other_way(spark: SparkSession, place: str) -> None:
    frame = mp.open(place)["/s"].to_spark(spark)
    assert frame.count() == 72
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "FileScan parquet" in plan
