"""`to_spark` in a session of the user, whose settings are not those that answers depend on."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

import millpond as mp
from millpond.kernel.write import create_table
from millpond.plan.types import DATE, LONG, STRING, TIMESTAMP, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millpond.kernel.table import DeltaTable

pytestmark = pytest.mark.spark
SETTINGS = {
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.caseSensitive": "false",
    "spark.sql.ansi.enabled": "false",
}


@pytest.fixture
def plain(spark: SparkSession) -> SparkSession:
    """A session as many people have it."""
    session = spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    return session


@pytest.fixture(params=["id", "name", "none"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> DeltaTable:
    settings = {"delta.columnMapping.mode": request.param, "delta.enableDeletionVectors": "true"}
    settings["delta.enableChangeDataFeed"] = "true"
    schema = Struct.of(n=LONG, at=TIMESTAMP, p=STRING)
    made = create_table(tmp_path / "t", schema, partition_by=["p"], configuration=settings)
    early, late = (dt.datetime(2024, 1, 1, hour, tzinfo=dt.UTC) for hour in (2, 20))
    rows = [(1, early, "a"), (2, late, "a"), (3, None, "b"), (4, None, "b")]
    with made.transaction(engine="arrow") as tx:
        tx.append([{"n": n, "at": at, "p": p} for n, at, p in rows])
    with made.update().transaction(engine="arrow") as tx:
        tx.delete(mp.col("n") == 4)
    return made.update()


def test_rows_are_right_and_the_frame_is_of_that_session(
    plain: SparkSession, table: DeltaTable
) -> None:
    frame = table.scan().to_spark(plain)
    assert frame.sparkSession is plain
    assert sorted(row.n for row in frame.collect()) == [1, 2, 3]
    on_that_day = mp.col("at").cast(DATE) == dt.date(2024, 1, 1)
    chosen = table.scan(["n"], on_that_day).to_spark(plain)
    assert sorted(row.n for row in chosen.collect()) == [1, 2]
    assert {name: plain.conf.get(name) for name in SETTINGS} == SETTINGS


def test_it_stays_so_among_other_frames_and_views(plain: SparkSession, table: DeltaTable) -> None:
    others = plain.createDataFrame([(1, "x"), (3, "z")], "n long, z string")
    joined = others.join(table.scan().to_spark(plain), "n").orderBy("n").collect()
    assert [(row.n, row.z, row.p) for row in joined] == [(1, "x", "a"), (3, "z", "b")]
    table.scan().to_spark(plain).createOrReplaceTempView("mine")
    assert plain.sql("select max(N) m from mine where p = 'a'").collect()[0].m == 2
    changes = table.changes(1).to_spark(plain).where("_change_type = 'insert'")
    assert sorted(row.n for row in changes.collect()) == [1, 2, 3, 4]
