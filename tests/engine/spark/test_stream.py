from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millpond.base.errors import EvaluationError
from millpond.engine.spark.remote_stream import estimated_bytes
from millpond.engine.spark.stream import arrow_batches, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from .conftest import RunScript

EVERY_TYPE = (
    "id",
    "timestamp_micros(id) AS utc",
    "cast(timestamp_micros(id) AS timestamp_ntz) AS local",
    "cast('2024-02-29' AS date) AS day",
    "cast(id AS string) AS text",
    "cast(cast(id AS string) AS binary) AS bytes",
    "cast(id AS decimal(20, 3)) AS exact",
    "id % 2 = 0 AS even",
    "nullif(id, 3) AS gap",
    "map('a', id, 'b', null) AS lookup",
    "named_struct('x', id, 'y', array(named_struct('z', cast(id AS string)))) AS tree",
    "cast(id AS double) AS number",
)


def stored_rdds(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.sc().getPersistentRDDs().size())


def ids(df: DataFrame, **options: bool) -> list[int]:
    return [i for b in arrow_batches(df, batch_rows=7, **options) for i in b.column(0).to_pylist()]


@pytest.mark.spark
def test_schema(spark: SparkSession) -> None:
    schema = arrow_schema(spark.range(1).selectExpr(*EVERY_TYPE))
    assert schema.field("utc").type == pa.timestamp("us", tz="UTC")
    assert schema.field("local").type == pa.timestamp("us")
    assert schema.field("text").type == pa.string()
    assert schema.field("bytes").type == pa.binary()
    assert schema.field("exact").type == pa.decimal128(20, 3)
    assert pa.types.is_map(schema.field("lookup").type)
    assert schema.field("tree").type.field("y").type.value_type.field("z").type == pa.string()
    assert not schema.field("id").nullable
    assert schema.field("gap").nullable


@pytest.mark.spark
def test_batches_have_the_schema_and_the_rows(spark: SparkSession) -> None:
    df = spark.range(0, 20, 1, 3).selectExpr(*EVERY_TYPE)
    batches = list(arrow_batches(df, batch_rows=4))
    assert {len(b) <= 4 for b in batches} == {True}
    table = pa.Table.from_batches(batches, arrow_schema(df))
    table.validate(full=True)
    rows = [row.asDict(recursive=True) for row in df.drop("utc", "bytes", "lookup").collect()]
    assert table.drop_columns(["utc", "bytes", "lookup"]).to_pylist() == rows
    assert table["lookup"].to_pylist()[1] == [("a", 1), ("b", None)]
    assert table["bytes"].to_pylist()[:2] == [b"0", b"1"]


@pytest.mark.spark
@pytest.mark.parametrize("prefetch", [False, True])
@pytest.mark.parametrize("partitions", [1, 2, 37])
def test_partition_order(spark: SparkSession, partitions: int, *, prefetch: bool) -> None:
    assert ids(spark.range(0, 500, 1, partitions), prefetch=prefetch) == list(range(500))


@pytest.mark.spark
def test_sorted_results_stay_sorted(spark: SparkSession) -> None:
    df = spark.range(0, 2000, 1, 4).selectExpr("(id * 7919) % 2000 AS n").orderBy("n")
    assert ids(df) == list(range(2000))


@pytest.mark.spark
@given(data=st.lists(st.integers(-5, 5), max_size=30), partitions=st.integers(1, 5))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_rows(spark: SparkSession, data: list[int], partitions: int) -> None:
    df = spark.createDataFrame([(n,) for n in data], "n long").coalesce(partitions)
    assert ids(df) == data


@pytest.mark.spark
def test_an_empty_result_has_a_schema_and_no_batches(spark: SparkSession) -> None:
    df = spark.range(0, 10, 1, 3).where("id < 0").selectExpr(*EVERY_TYPE)
    assert list(arrow_batches(df, batch_rows=5)) == []
    assert arrow_schema(df).names[0] == "id"


@pytest.mark.spark
def test_columns_may_be_named_alike(spark: SparkSession) -> None:
    (batch,) = arrow_batches(spark.sql('SELECT 1 AS "a.b", 2 AS "a.b"'))
    assert batch.schema.names == ["a.b", "a.b"]


@pytest.mark.spark
def test_nothing_runs_before_the_first_batch(spark: SparkSession) -> None:
    arrow_batches(spark.range(3).selectExpr("raise_error('ran')"))


@pytest.mark.spark
@pytest.mark.parametrize("prefetch", [False, True])
def test_leaving_early_leaves_nothing(spark: SparkSession, *, prefetch: bool) -> None:
    big = spark.range(0, 400_000, 1, 8).selectExpr("id", "repeat('x', 100) AS s")
    batches = arrow_batches(big, batch_rows=100, prefetch=prefetch)
    assert next(batches).num_rows == 100
    assert stored_rdds(spark) == 1
    with contextlib.closing(batches):  # type: ignore[type-var]
        next(batches)
    assert stored_rdds(spark) == 0
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + 20
    while tracker.getActiveJobsIds() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not tracker.getActiveJobsIds()
    assert ids(spark.range(20)) == list(range(20))


@pytest.mark.spark
def test_two_streams_side_by_side(spark: SparkSession) -> None:
    one = arrow_batches(spark.range(0, 50, 1, 5), batch_rows=3)
    two = arrow_batches(spark.range(100, 150, 1, 5), batch_rows=3)
    seen = [(a.column(0)[0].as_py(), b.column(0)[0].as_py()) for a, b in zip(one, two, strict=True)]
    assert all(b - a == 100 for a, b in seen)
    assert len(seen) == 20
    assert stored_rdds(spark) == 0


@pytest.mark.spark
def test_read_in_another_thread(spark: SparkSession) -> None:
    batches = arrow_batches(spark.range(0, 50, 1, 5), batch_rows=3)
    seen: list[int] = []
    reader = threading.Thread(target=lambda: seen.extend(b.num_rows for b in batches))
    reader.start()
    reader.join()
    assert sum(seen) == 50


@pytest.mark.spark
@pytest.mark.parametrize("prefetch", [False, True])
def test_an_error_half_way(spark: SparkSession, *, prefetch: bool) -> None:
    df = spark.range(0, 100, 1, 20).selectExpr("id", "1 / (id - 90) AS x")
    seen: list[int] = []
    with pytest.raises(EvaluationError, match="division by zero"):
        seen.extend(b.num_rows for b in arrow_batches(df, batch_rows=5, prefetch=prefetch))
    assert sum(seen) <= 90
    assert stored_rdds(spark) == 0


@pytest.mark.spark
def test_tasks_see_the_sessions_settings(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    df = other.sql(
        "SELECT cast(timestamp '2024-01-01 00:00:00 UTC' + id * interval 1 hour AS string) "
        "FROM range(0, 1, 1, 1)"
    )
    (batch,) = arrow_batches(df)
    assert batch.column(0).to_pylist() == ["2024-01-01 09:00:00"]


def test_bad_batch_rows() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        arrow_batches(None, batch_rows=0)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.spark
def test_results_larger_than_the_heap(run_script: RunScript) -> None:
    """Two results of 1.2 GB through a heap of 512 MB: spread, and all in one partition."""
    done = run_script(
        """
        import re
        from pathlib import Path
        from millpond.base.settings import Settings
        from millpond.engine.spark.session import spark_session
        from millpond.engine.spark.stream import arrow_batches
        spark = spark_session(
            Settings.load(env={}, spark_master="local[2]", spark_driver_memory="512m")
        )
        for partitions in (8, 1):
            df = spark.range(0, 1_200_000, 1, partitions).selectExpr(
                "id", "repeat(cast(id % 10 AS string), 1000) AS text"
            )
            rows = size = 0
            for batch in arrow_batches(df, batch_rows=2000):
                assert batch.column(0)[0].as_py() == rows
                rows += batch.num_rows
                size += batch.nbytes
            print(rows, size > 2 * 512 * 1024 * 1024)
        # Not ru_maxrss, which a process has from the one that started it.
        peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
        print(int(peak[1]) < 600_000)
        """
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["1200000", "True", "1200000", "True", "True"]


# --- Spark Connect


def test_estimates_are_read_from_the_plan() -> None:
    plan = "== Optimized Logical Plan ==\nProject [id], Statistics(sizeInBytes={})\n+- Range"
    assert estimated_bytes(plan.format("8.0 B")) == 8
    assert estimated_bytes(plan.format("2.0 GiB, rowCount=3")) == 2 << 30
    assert estimated_bytes(plan.format("1.2E+30 B")) == int(1.2e30)
    assert estimated_bytes("== Physical Plan ==\nRange") is None
