"""Times without a zone are what they say, also in a session whose time zone is not UTC."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.engine.spark import SparkEngine
from millpond.plan.expr import col
from millpond.plan.make import values
from millpond.plan.sources import File, Scan
from millpond.plan.types import DATE, LONG, TIMESTAMP, TIMESTAMP_NTZ, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millpond.plan.node import Plan

MOMENT = dt.datetime(2020, 6, 8, 2, 30, 0, 7, tzinfo=dt.UTC)
LOCAL = MOMENT.replace(tzinfo=None)
TYPES = Struct.of(n=LONG, local=TIMESTAMP_NTZ, moment=TIMESTAMP, day=DATE)
NAMES = ("local", "moment", "day")


@pytest.fixture
def engine(spark: SparkSession) -> SparkEngine:
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    return SparkEngine(theirs)


def rows(engine: SparkEngine, plan: Plan) -> list[dict[str, Any]]:
    return [row for batch in engine.execute(plan) for row in batch.to_pylist()]


def row(n: int, day: int = 0) -> dict[str, Any]:
    shift = dt.timedelta(days=day)
    return {"n": n, "local": LOCAL + shift, "moment": MOMENT + shift, "day": LOCAL.date() + shift}


@pytest.mark.parametrize("files", [1, 3])
def test_constants(engine: SparkEngine, files: int, tmp_path: Path) -> None:
    entries = []
    for number in range(files):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"n": [number]}), path)
        constants = tuple(row(number, number)[name] for name in NAMES)
        entries.append(File(str(path), constants=constants))
    scan = Scan("parquet", tuple(entries), TYPES, NAMES)
    assert rows(engine, scan) == [row(number, number) for number in range(files)]
    assert rows(engine, scan.filter(col("local") == LOCAL)) == [row(0)]
    assert rows(engine, scan.filter(col("moment") == MOMENT)) == [row(0)]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_columns_of_files(engine: SparkEngine, unit: str, tmp_path: Path) -> None:
    given = [row(1), row(2, -30_000)]  # long before 1970
    types = {"n": pa.int64(), "local": pa.timestamp(unit), "moment": pa.timestamp(unit, "UTC")}
    fields = [*types.items(), ("day", pa.date32())]
    pq.write_table(pa.Table.from_pylist(given, pa.schema(fields)), tmp_path / "0.parquet")
    scan = Scan("parquet", (File(str(tmp_path / "0.parquet")),), TYPES)
    assert rows(engine, scan) == given
    assert rows(engine, scan.filter(col("local") < LOCAL)) == given[1:]


def test_values(engine: SparkEngine) -> None:
    assert rows(engine, values([row(1)], schema=TYPES)) == [row(1)]
