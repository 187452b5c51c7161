"""The engine as an executor: schemas, counters, observations, early ends, errors."""

# ruff: noqa: DTZ001 - timestamps without a zone are what is tested

from __future__ import annotations

import datetime as dt
import decimal
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from millpond.base.errors import EngineError, PlanError
from millpond.engine.spark import SparkEngine, session
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.executor import Execution, Executor
from millpond.plan.expr import col
from millpond.plan.functions import FUNCTIONS
from millpond.plan.make import stored, values
from millpond.plan.node import NODES
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Field,
    List,
    Map,
    Struct,
)

pytestmark = pytest.mark.spark

EVERY = Struct(
    (
        Field("b", BOOLEAN, False),
        Field("i", BYTE),
        Field("f", FLOAT),
        Field("d", DOUBLE),
        Field("c", Decimal(38, 10)),
        Field("s", STRING, False),
        Field("y", BINARY),
        Field("day", DATE),
        Field("at", TIMESTAMP),
        Field("ntz", TIMESTAMP_NTZ),
        Field("null", NULL),
        Field("list", List(Struct((Field("x", LONG, False), Field("y", LONG))), False)),
        Field("map", Map(STRING, List(TIMESTAMP), False)),
    )
)


def every_row() -> dict[str, Any]:
    at = dt.datetime(1, 1, 1, 0, 0, 0, 1)
    return {
        "b": True,
        "i": -128,
        "f": 0.5,
        "d": float("-inf"),
        "c": decimal.Decimal("1.5"),
        "s": "\x00ü",
        "y": b"\xff",
        "day": dt.date(1582, 10, 10),
        "null": None,
        "ntz": at,
        "at": at.replace(tzinfo=dt.UTC),
        "list": [{"x": 1, "y": None}],
        "map": [("k", [at.replace(tzinfo=dt.UTC), None])],
    }


def test_it_is_an_executor_that_knows_every_node(engine: Any) -> None:
    assert isinstance(engine, Executor)
    assert engine.name == "spark"
    assert engine.capabilities.nodes | {"Stored"} >= set(NODES) - {"Plan"}
    assert engine.capabilities.functions == set(FUNCTIONS)
    assert engine.capabilities.distributed


def test_capabilities_are_known_without_pyspark() -> None:
    code = (
        "import sys, millpond.engine.spark as s; s.SparkEngine().capabilities; "
        "assert not {'pyspark', 'pandas', 'py4j'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_type_passes_through_with_its_exact_schema(run_table: Any) -> None:
    table = pa.Table.from_pylist([every_row()] * 3, schema=to_arrow_schema(EVERY))
    plan = values(table)
    made = run_table(plan)
    assert made.schema.equals(to_arrow_schema(EVERY), check_metadata=True)
    assert made.equals(table)
    assert run_table(plan.head(2).union(plan.tail(1)).sort("i")).equals(table)
    assert run_table(plan.filter(~col("b"))).num_rows == 0


def test_the_schema_is_known_before_the_first_batch(engine: Any) -> None:
    run = engine.execute(values([{"x": 1}]).select(y=col("x") / 2))
    assert isinstance(run, Execution)
    assert run.schema == pa.schema([("y", pa.float64())])
    assert next(run).to_pylist() == [{"y": 0.5}]
    with pytest.raises(StopIteration):
        next(run)
    run.close()
    run.close()


def test_counters_and_observations_are_of_this_run_alone(engine: Any, scan_of: Any) -> None:
    plan = scan_of(pa.table({"x": range(1000)}), pa.table({"x": range(500)}))
    for _ in range(2):
        run = engine.execute(plan.aggregate("x"))
        rows = sum(batch.num_rows for batch in run)
        assert rows == run.counters.rows_emitted == 1000
        assert run.counters.files_opened == 2
        assert run.counters.rows_decoded == 1500
        assert run.counters.bytes_read > 0
        stages = run.observations()
        assert sum(stage.details["input_rows"] for stage in stages) == 1500
        assert all(stage.details["tasks"] > 0 and stage.seconds is not None for stage in stages)


def test_an_early_end_cancels_what_runs(engine: Any, spark: Any) -> None:
    plan = values([{"x": 1}] * 1000)
    run = engine.execute(plan.join(plan.rename(x="y"), on=[("x", "y")]))
    next(run)
    run.close()
    assert list(run) == []
    tracker = spark.sparkContext.statusTracker()
    assert tracker.getActiveJobsIds() == []


def test_progress_is_reported(spark: Any) -> None:
    seen: list[Any] = []
    engine = SparkEngine(spark, progress=seen.append)
    assert sum(batch.num_rows for batch in engine.execute(values([{"x": 1}]).sort("x"))) == 1
    assert seen[-1].done


def test_stored_paths_are_bound_to_a_scope(engine: Any) -> None:
    plan = stored("/a", Struct.of(x=LONG)).filter(col("x") > 1)

    class Pond:
        def resolve(self, node: Any) -> Any:
            return values([{"x": 1}, {"x": 2}])

    assert [batch.to_pylist() for batch in engine.execute(plan, Pond())] == [[{"x": 2}]]
    with pytest.raises(PlanError, match="scope"):
        engine.execute(plan)


def test_nulls_where_the_schema_has_none_are_an_error(engine: Any, scan_of: Any) -> None:
    from dataclasses import replace

    scan = scan_of(pa.table({"x": pa.array([1, None], pa.int64())}))
    strict = replace(scan, columns=Struct((Field("x", LONG, nullable=False),)))
    with pytest.raises(EngineError, match="column x"):
        list(engine.execute(strict))


def test_a_dataframe_to_go_on_with(engine: Any) -> None:
    df = engine.to_dataframe(values([{"x": 2}, {"x": 1}]).sort("x"), ordered=True)
    assert [row.x for row in df.filter("x > 0").collect()] == [1, 2]


def test_without_a_session_it_asks_for_that_of_the_process(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_running", session._Running())
    engine = SparkEngine()
    for _ in range(2):
        adopted = session.adopt(spark.newSession())
        assert engine.session is adopted
        assert engine.to_dataframe(values([{"x": 1}])).sparkSession is adopted
        session.stop_session()


@pytest.mark.slow
def test_a_run_starts_spark_again_where_it_has_ended(run_script: Any) -> None:
    done = run_script(
        """
        import millpond as mp
        from millpond.engine.spark import session

        plan = mp.values([{"a": 1}]).select(b=mp.col("a") + 1)
        print(plan.to_pylist(engine="spark"))
        session._running.jvm.process.kill()
        session._running.jvm.process.wait()
        print(plan.to_pylist(engine="spark"))
        session.stop_session()
        print(plan.to_pylist(engine="spark"))
        """
    )
    assert (done.stdout, done.stderr) == ("[{'b': 2}]\n" * 3, "")
