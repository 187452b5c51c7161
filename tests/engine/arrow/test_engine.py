"""The engine as a whole: the protocol, closing, explain, observations, long chains."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.base.errors import PlanError, RunCancelledError, UnsupportedNodeError
from millpond.plan import aggregates as agg
from millpond.plan.counters import collect_stats
from millpond.plan.executor import Execution, Executor
from millpond.plan.expr import col, path
from millpond.plan.make import stored, values
from millpond.plan.streams import Sql
from millpond.plan.types import LONG, Struct

if TYPE_CHECKING:
    from millpond.engine.arrow import ArrowEngine
    from millpond.plan.node import Plan

ROWS = pa.table({"a": list(range(100)), "s": [{"x": i, "y": str(i)} for i in range(100)]})


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_it_is_an_executor(engine: ArrowEngine) -> None:
    assert isinstance(engine, Executor)
    assert engine.name == "arrow"
    assert "Sql" not in engine.capabilities.nodes
    assert {"Scan", "Join", "TopK", "StatefulFunction"} <= engine.capabilities.nodes
    assert isinstance(engine.execute(values(ROWS)), Execution)


def test_the_schema_is_there_before_the_first_batch(engine: ArrowEngine) -> None:
    execution = engine.execute(values(ROWS).select("a"))
    assert execution.schema == pa.schema([("a", pa.int64())])


def test_a_cancelled_run_gives_no_more(engine: ArrowEngine) -> None:
    before = engine.execute(values(ROWS).sort("a"))
    before.cancel()
    with pytest.raises(RunCancelledError, match="arrow"):
        next(before)
    between = engine.execute(values(ROWS).union(values(ROWS)))
    assert next(between).num_rows == 100
    between.cancel()
    with pytest.raises(RunCancelledError):
        next(between)
    assert list(between) == []


def test_a_node_that_it_does_not_run_is_named(engine: ArrowEngine) -> None:
    plan = Sql("select * from t", ("t",), (values(ROWS),), Struct.of(a=LONG))
    with pytest.raises(UnsupportedNodeError, match="arrow engine does not run Sql"):
        engine.execute(plan)


def test_a_stored_path_needs_a_scope(engine: ArrowEngine) -> None:
    with pytest.raises(PlanError, match="/events"):
        engine.execute(stored("/events", Struct.of(a=LONG)))


def test_a_stored_path_is_what_the_scope_says(engine: ArrowEngine) -> None:
    class Pinned:
        def resolve(self, stored: object) -> Plan:
            return values(ROWS).select("a")

    found = list(engine.execute(stored("/events", Struct.of(a=LONG)).head(1), Pinned()))
    assert found[0].to_pylist() == [{"a": 0}]


def test_closing_half_way_closes_files(engine: Any, parquet: Any) -> None:
    scan = parquet(ROWS, ROWS)
    before = open_files()
    execution = engine.execute(scan.filter(col("a") >= 0))
    next(execution)
    assert open_files() > before
    execution.close()
    execution.close()
    assert open_files() == before
    assert list(execution) == []
    assert execution.counters.batches_decoded == 1
    assert execution.counters.early_exit_batches_skipped == 10


def test_an_abandoned_run_lets_go_of_everything(
    tiny: Any, parquet: Any, monkeypatch: Any, tmp_path: Any
) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    before = open_files()
    execution = tiny.execute(parquet(ROWS).sort(col("a").desc()))
    next(execution)
    assert len(list(spill.iterdir())) == 1
    del execution
    gc.collect()
    assert open_files() == before
    assert list(spill.iterdir()) == []


def test_an_error_closes_files_and_removes_spilled_rows(
    tiny: Any, parquet: Any, monkeypatch: Any, tmp_path: Any
) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    broken = parquet(ROWS).with_columns(b=(1 / (col("a") - 99))).sort("a")
    before = open_files()
    with pytest.raises(ArithmeticError):
        list(tiny.execute(broken))
    assert open_files() == before
    assert list(spill.iterdir()) == []


def test_counters_are_of_one_run_and_reach_collectors(engine: Any, parquet: Any) -> None:
    scan = parquet(ROWS)
    with collect_stats() as seen:
        first, second = engine.execute(scan), engine.execute(scan.head(1))
        list(first)
        list(second)
    assert (first.counters.batches_decoded, second.counters.batches_decoded) == (10, 1)
    assert seen.batches_decoded == 11
    assert first.counters.rows_emitted == 100


def test_ten_thousand_heads_filters_and_projections(engine: Any, parquet: Any) -> None:
    plan: Plan = parquet(ROWS)
    for number in range(10_000):
        step = number % 3
        if step == 0:
            plan = plan.head(50)
        elif step == 1:
            plan = plan.filter(col("a") >= 0)
        else:
            plan = plan.select("a")
    assert sum(batch.num_rows for batch in engine.execute(plan)) == 50
    assert len(engine.explain(plan).splitlines()) > 5_000


def test_ten_thousand_operators_of_other_kinds(engine: ArrowEngine) -> None:
    plan: Plan = values(pa.table({"a": [3, 1, 2]}))
    for number in range(2_500):
        plan = plan.sort("a") if number % 2 else plan.tail(3)
        plan = plan.union(values(pa.table({"a": [number]}))).head(3)
    assert [row["a"] for batch in engine.execute(plan) for row in batch.to_pylist()] == [1, 2, 3]


def test_observations_name_every_node(engine: Any, parquet: Any) -> None:
    plan = parquet(ROWS).filter(path("s.x") >= 95).select("a").head(3)
    execution = engine.execute(plan)
    list(execution)
    seen = {(o.node, o.name): o.rows for o in execution.observations()}
    assert seen == {(0, "Scan"): 10, (1, "Filter"): 5, (2, "Project"): 5, (3, "Head"): 3}
    assert all(o.seconds is not None and o.seconds >= 0 for o in execution.observations())


def test_explain_opens_nothing(engine: ArrowEngine, parquet: Any, tmp_path: Path) -> None:
    scan = parquet(ROWS)
    Path(scan.files[0].path).unlink()
    text = engine.explain(scan.filter(path("s.x") > 3).select("a").aggregate("a", n=agg.count()))
    assert text.splitlines()[0].startswith("#3 Group by a")
    assert "pruned by statistics; decode (s: struct<x: long>), keep (s.x > 3)" in text


def test_the_same_input_used_twice_runs_twice(run: Any, parquet: Any) -> None:
    scan = parquet(ROWS).select("a")
    rows, counters = run(scan.union(scan))
    assert [row["a"] for row in rows] == [*range(100), *range(100)]
    assert counters.batches_decoded == 20


def test_execute_parallel_gives_the_same_rows(engine: ArrowEngine) -> None:
    rows = [row for batch in engine.execute_parallel(values(ROWS)) for row in batch.to_pylist()]
    assert rows == ROWS.to_pylist()
