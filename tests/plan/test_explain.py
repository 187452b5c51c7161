"""explain reads nothing and says everything; explain_analyze runs and stops where it is told to."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.base.clock import ManualClock
from millpond.base.errors import PlanError, RunCancelledError
from millpond.plan import aggregates as agg
from millpond.plan.counters import Counters, collect_stats
from millpond.plan.executor import Capabilities, Observation
from millpond.plan.explain import explain, explain_analyze
from millpond.plan.explain.layout import layout
from millpond.plan.expr import col, path
from millpond.plan.functions import FUNCTIONS
from millpond.plan.make import stored, values
from millpond.plan.node import NODES
from millpond.plan.run import engine_named
from millpond.plan.sources import File, Scan
from millpond.plan.tree import topological
from millpond.plan.types import DOUBLE, LONG, STRING, List, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.plan.executor import Scope
    from millpond.plan.node import Plan
    from millpond.plan.sources import Stored

ITEM = Struct.of(sku=STRING, price=LONG)
COLUMNS = Struct.of(id=LONG, level=DOUBLE, items=List(ITEM), o=Struct.of(x=LONG, y=STRING))
ABSENT = Scan("parquet", (File("/does/not/exist.parquet", 1_000_000, 10_000),), COLUMNS)
QUERY = (
    ABSENT.filter((col("level") > 3) & path("items").any(path("price") > 5))
    .sort(col("level").desc())
    .select("id", x=path("o.x"))
    .head(10)
)


def test_text_of_everything() -> None:
    assert explain(QUERY, steps=False, engine="arrow") == (
        "Logical plan\n"
        "  #4 Head 10\n"
        "  #3 Project id, x := o.x\n"
        "  #2 Sort level desc\n"
        "  #1 Filter ((level > 3.0) and any(items, (price > 5)))\n"
        "  #0 Scan parquet [1 file] (id: long, level: double,"
        " items: list<struct<sku: string, price: long>>, o: struct<x: long, y: string>)\n"
        "\n"
        "Optimized plan\n"
        "  #3 Project id, x := o.x\n"
        "  #2 TopK 10 by level desc\n"
        "  #1 Filter ((level > 3.0) and any(items, (price > 5)))\n"
        "  #0 Scan parquet [1 file] (id: long, level: double,"
        " items: list<struct<price: long>>, o: struct<x: long>)\n"
        "\n"
        "Decode\n"
        "  #0 parquet /does/not/exist.parquet: 4 of 6 leaf columns:"
        " id, level, items[*].price, o.x; skips row groups by (level > 3.0)\n"
        "\n"
        "Order\n"
        "  #2 TopK keeps 10 rows\n"
        "\n"
        "Engine\n"
        "  arrow: asked for by name"
    )


def test_explaining_decodes_nothing() -> None:
    with collect_stats() as seen:
        explain(QUERY, costs=True, steps=True, engine="arrow")
    assert set(seen.to_dict().values()) == {0}


def test_sections_are_there_when_asked_for() -> None:
    found = json.loads(
        explain(QUERY, logical=False, optimized=False, decode=False, engine="arrow", format="json")
    )
    assert list(found) == ["order", "engine"]
    found = json.loads(explain(QUERY, costs=True, steps=True, engine="arrow", format="json"))
    assert list(found) == ["logical", "steps", "optimized", "decode", "order", "engine"]
    assert found["logical"][1] == {
        "id": 1,
        "kind": "Filter",
        "inputs": [0],
        "label": "((level > 3.0) and any(items, (price > 5)))",
        "estimate": found["logical"][1]["estimate"],
    }
    assert list(found["logical"][0]["estimate"]) == [
        *("rows", "bytes_read", "files", "row_groups", "cpu_per_row", "cost", "total_cost")
    ]
    assert found["logical"][0]["estimate"]["rows"] == 10_000
    assert found["decode"] == [
        {
            "node": 0,
            "kind": "Scan",
            "source": "parquet /does/not/exist.parquet",
            "columns": ["id", "level", "items[*].price", "o.x"],
            "of": 6,
            "prunes_by": "(level > 3.0)",
        }
    ]
    assert [step["rule"] for step in found["steps"]] == [
        "push_limits",
        "fuse_topk",
        "prune_columns",
    ]
    assert found["engine"] == {"name": "arrow", "reason": "arrow: asked for by name"}


def test_the_unknown_is_called_unknown() -> None:
    text = explain(stored("/x", COLUMNS).filter(col("id") > 1), costs=True, engine="arrow")
    assert "unknown rows, unknown cost" in text


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(PlanError, match="text or json"):
        explain(QUERY, format="xml", engine="arrow")  # type: ignore[arg-type]


def test_a_scope_shows_what_a_stored_path_is() -> None:
    @dataclass
    class Pinned:
        def resolve(self, found: Stored) -> Plan:
            return ABSENT.select(*found.schema.names)

    plan = stored("/orders", COLUMNS).select("id")
    text = explain(plan, scope=Pinned(), engine="arrow")
    assert "#0 Stored /orders" in text
    assert "1 of 6 leaf columns: id" in text


def test_order_notes() -> None:
    plan = values([{"a": 1, "b": 2}]).sort("a").window("n", "row_number", order_by=["b"])
    found = json.loads(
        explain(plan.aggregate("a", n=agg.count()), engine=Recorder([]), format="json")
    )
    notes = [f"{note['kind']} {note['note']}" for note in found["order"]]
    assert notes == [
        "Sort keeps 16 bytes a row besides 8 of its keys",
        "Aggregate keeps a row a group; groups come in the order of their keys",
    ]
    found = json.loads(explain(plan, engine=Recorder([]), format="json"))
    assert found["order"][1]["note"] == "a window without keys (n): one partition"


def test_a_long_chain_is_not_indented() -> None:
    plan = values([{"a": 1}])
    for number in range(10_000):
        plan = plan.filter(col("a") > number)
    lines = layout(plan)
    assert len(lines) == 10_001
    assert not any(line.startswith(" ") for line in lines)


def test_many_branches_do_not_run_off_the_page() -> None:
    plan = values([{"a": 1}])
    for _ in range(300):
        plan = plan.union(values([{"a": 2}]))
    assert max(map(len, layout(plan))) < 200


def test_what_is_shared_is_drawn_once() -> None:
    base = values([{"a": 1}]).filter(col("a") > 0)
    lines = layout(base.union(base))
    assert lines == [
        "#2 Union",
        "  - #1 Filter (a > 0)",
        "    #0 Values [1 rows] (a: long)",
        "  - #1 (see above)",
    ]


# A run with batches made by hand: bounds are checked batch by batch, so batches have to be known.
class Run:
    def __init__(self, plan: Plan, sizes: list[int], clock: ManualClock | None) -> None:
        self._plan, self._sizes, self._clock = plan, list(sizes), clock
        self.counters = Counters.begin()
        self.schema = pa.schema([("a", pa.int64())])
        self.closed = False
        self.cancelled = threading.Event()
        self._rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        if not self._sizes:
            raise StopIteration
        if self._clock is not None:
            self._clock.advance(timedelta(milliseconds=40))
        size = self._sizes.pop(0)
        self._rows += size
        self.counters.add("batches_decoded")
        return pa.record_batch({"a": pa.array(range(size), pa.int64())})

    def cancel(self) -> None:
        self.cancelled.set()

    def close(self) -> None:
        self.closed = True

    def observations(self) -> tuple[Observation, ...]:
        root = len(topological(self._plan)) - 1
        seen = Observation("root", root, self._rows, 1, 0.5, {"spilled": 3})
        return (seen, Observation("stage 0", None, 4, None, 0.25))


class Recorder:
    name = "recorder"
    capabilities = Capabilities(frozenset(NODES), frozenset(FUNCTIONS))

    def __init__(self, sizes: list[int], clock: ManualClock | None = None) -> None:
        self.sizes, self.clock = sizes, clock
        self.runs: list[Run] = []

    def execute(self, plan: Plan, scope: Scope | None = None) -> Any:
        self.runs.append(Run(plan, self.sizes, self.clock))
        return self.runs[-1]

    execute_parallel = execute

    def explain(self, plan: Plan, scope: Scope | None = None) -> str:
        return "as it is\nwritten"


def test_the_engine_has_its_own_view() -> None:
    text = explain(QUERY, physical=True, engine=Recorder([]))
    assert text.endswith("Physical plan (recorder)\n  as it is\n  written")


def test_a_whole_run() -> None:
    engine = Recorder([3, 4])
    report = explain_analyze(values([{"a": n} for n in range(7)]), engine=engine)
    assert report.partial is None
    assert (report.rows, report.batches) == (7, 2)
    assert report.counters["batches_decoded"] == 2
    assert report.nodes[0].estimated_rows == 7
    assert report.nodes[0].rows == 7
    assert engine.runs[0].closed
    text = report.to_text()
    assert text.startswith("Complete\n  7 rows in 2 batches")
    assert "[7 rows, 7 rows estimated, 1 batch, 500.0 ms, spilled 3]" in text
    assert "stage 0: 4 rows, 250.0 ms" in text
    assert "batches_decoded 2" in text
    assert str(report) == text


def test_max_rows_bounds_what_is_taken() -> None:
    engine = Recorder([3, 4, 5])
    report = explain_analyze(values([{"a": 1}]), engine=engine, max_rows=5)
    assert (report.rows, report.batches) == (5, 2)
    assert report.partial == "stopped after 5 rows (max_rows)"
    assert report.to_text().startswith("PARTIAL: stopped after 5 rows (max_rows)\n")
    assert engine.runs[0].closed
    assert explain_analyze(values([{"a": 1}]), engine=Recorder([3]), max_rows=4).partial is None
    assert explain_analyze(values([{"a": 1}]), engine=Recorder([3]), max_rows=0).batches == 0


def test_the_time_is_looked_at_between_batches() -> None:
    clock = ManualClock()
    report = explain_analyze(
        values([{"a": 1}]), engine=Recorder([1] * 9, clock), time_budget_ms=100, clock=clock
    )
    assert report.batches == 3
    assert report.partial == "stopped after 100 ms (time_budget_ms)"
    assert report.seconds == pytest.approx(0.12)


class Stuck(Run):
    """Its first batch never comes, unless it is cancelled."""

    def __next__(self) -> pa.RecordBatch:
        self.cancelled.wait()
        raise RunCancelledError("recorder")


def test_a_batch_that_does_not_come_is_not_waited_for() -> None:
    runs: list[Stuck] = []

    class Engine(Recorder):
        def execute(self, plan: Plan, scope: Scope | None = None) -> Any:
            runs.append(Stuck(plan, [1], None))
            return runs[-1]

    report = explain_analyze(values([{"a": 1}]), engine=Engine([]), time_budget_ms=20)
    assert report.partial == "stopped after 20 ms (time_budget_ms)"
    assert (report.rows, report.batches) == (0, 0)
    assert runs[0].closed


def test_a_run_that_someone_else_cancelled_is_no_report() -> None:
    class Engine(Recorder):
        def execute(self, plan: Plan, scope: Scope | None = None) -> Any:
            run = Stuck(plan, [1], None)
            run.cancel()
            return run

    with pytest.raises(RunCancelledError, match="recorder"):
        explain_analyze(values([{"a": 1}]), engine=Engine([]), time_budget_ms=1e300)


def test_bounds_are_not_negative() -> None:
    with pytest.raises(PlanError, match="max_rows"):
        explain_analyze(values([{"a": 1}]), engine=Recorder([]), max_rows=-1)
    with pytest.raises(PlanError, match=r"max_rows takes a whole number, not 2\.5"):
        explain_analyze(values([{"a": 1}]), engine=Recorder([]), max_rows=2.5)  # type: ignore[arg-type]


def test_the_report_as_json() -> None:
    report = explain_analyze(values([{"a": 1}]), engine=Recorder([2]), format="json")
    found = json.loads(str(report))
    assert found == report.to_dict()
    assert list(found) == [
        *("partial", "engine", "rows", "batches", "seconds", "nodes", "engine_steps", "counters")
    ]
    assert found["engine_steps"][0]["name"] == "stage 0"


def test_a_real_run_counts_itself_alone() -> None:
    plan = values([{"a": n} for n in range(100)]).filter(col("a") >= 90).select("a")
    engine = engine_named("arrow")
    first = plan.explain_analyze(engine=engine)
    second = plan.explain_analyze(engine=engine)
    assert first.rows == second.rows == 10
    assert first.counters["rows_emitted"] == second.counters["rows_emitted"] == 10
    assert first.nodes[-1].rows == 10


def test_a_plan_explains_itself() -> None:
    assert values([{"a": 1}]).explain(engine="arrow").startswith("Logical plan\n  #0 Values")
