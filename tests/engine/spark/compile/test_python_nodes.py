"""Row filters and stateful functions: in this process at the root, in Python workers elsewhere."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from millpond.base.errors import EvaluationError
from millpond.engine.arrow import ArrowEngine
from millpond.engine.spark import SparkEngine, tail
from millpond.plan import aggregates as agg
from millpond.plan.expr import col
from millpond.plan.make import values
from millpond.plan.types import DOUBLE, LONG, STRING, DataType, Struct

pytestmark = pytest.mark.spark


@dataclass
class NewRun:
    seen: set[Any] = field(default_factory=set)
    is_finished: bool = False

    def apply(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        kept = []
        for value in batch.column(0).to_pylist():
            kept.append(value not in self.seen)
            self.seen.add(value)
        return pa.array(kept)

    def finish(self) -> None:
        self.is_finished = True


@dataclass
class FirstOfEach:
    """Keeps the first row of each value."""

    columns: tuple[str, ...] = ("k",)
    name: str = "first_of_each"
    config: dict[str, Any] = field(default_factory=dict)
    runs: list[NewRun] = field(default_factory=list)

    def open(self) -> NewRun:
        self.runs.append(NewRun())
        return self.runs[-1]


class Running:
    """The sum so far, of the rows that are accepted."""

    name = "running"
    config: ClassVar[dict[str, Any]] = {}

    def return_type(self, input_types: tuple[DataType, ...]) -> DataType:
        return input_types[0]

    def create_instance(self) -> RunningSum:
        return RunningSum()


class RunningSum:
    def __init__(self) -> None:
        self.total = 0

    def eval(self, args: tuple[Any, ...], *, accept: bool) -> Any:
        if accept:
            self.total += args[0] or 0
        return self.total

    def snapshot(self) -> Any:
        return self.total

    def restore(self, state: Any) -> None:
        self.total = state


ROWS = values([{"k": k, "v": v} for v, k in enumerate([2, 1, None, 2, 1, 3])])


def test_a_row_filter_at_the_root_runs_here(run_rows: Any) -> None:
    row_filter = FirstOfEach()
    plan = ROWS.filter_ordered(row_filter)
    assert run_rows(plan) == [(2, 0), (1, 1), (None, 2), (3, 5)]
    assert row_filter.runs[0].seen == {1, 2, 3, None}
    assert row_filter.runs[0].is_finished


def test_with_projections_filters_and_heads_above_it(run_rows: Any) -> None:
    row_filter = FirstOfEach(columns=("key",))
    plan = ROWS.select(col("k").alias("key"), "v").filter_ordered(row_filter)
    plan = plan.select(col("v").alias("w"), "key").filter(col("w") > 0).select("w").head(2)
    assert run_rows(plan) == [(1,), (2,)]
    assert row_filter.runs
    assert not row_filter.runs[0].is_finished


def test_a_wide_projection_is_one_step(run_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Any] = []
    build = tail.build

    def noted(*given: Any) -> Any:
        built.append(build(*given))
        return built[-1]

    monkeypatch.setattr(tail, "build", noted)
    plan = ROWS.filter_ordered(FirstOfEach()).select(**{f"c{i}": col("v") > i for i in range(50)})
    assert run_table(plan).column("c4").to_pylist() == [False, False, False, True]
    df, _ = built[0]
    assert str(df._jdf.queryExecution().analyzed()).count("Project") < 10
    assert sum(batch.num_rows for batch in run_table(plan.select()).to_batches()) == 4


def test_two_row_filters(run_rows: Any) -> None:
    first, second = FirstOfEach(), FirstOfEach(columns=("even",))
    plan = ROWS.filter_ordered(first).select("k", "v", even=(col("v") > 1))
    assert run_rows(plan.filter_ordered(second)) == [(2, 0, False), (None, 2, True)]
    assert first.runs[0].is_finished
    assert second.runs[0].seen == {True, False}


@pytest.mark.parametrize(("below", "above"), [(9, 9), (2, 9), (2, 2), (9, 1), (0, 9), (9, 0)])
def test_who_saw_its_input_to_the_end_is_told_so(engine: Any, below: int, above: int) -> None:
    def seen(executor: Any) -> tuple[list[Any], list[list[bool]]]:
        first, second = FirstOfEach(), FirstOfEach(columns=("v",))
        plan = ROWS.filter_ordered(first).head(below).filter_ordered(second).head(above)
        rows = [row for batch in executor.execute(plan) for row in batch.to_pylist()]
        return rows, [[run.is_finished for run in each.runs] for each in (first, second)]

    assert seen(engine) == seen(ArrowEngine())


@dataclass
class Answering:
    """Gives these answers, whatever it is asked."""

    answers: list[bool | None]
    columns: tuple[str, ...] = ("k",)
    name: str = "answering"
    config: dict[str, Any] = field(default_factory=dict)

    def open(self) -> Answering:
        return self

    def apply(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        return pa.array(self.answers, pa.bool_())

    def finish(self) -> None:
        pass


@pytest.mark.parametrize("answers", [[None], [True, True]])
def test_each_row_has_to_have_an_answer(engine: Any, answers: list[bool | None]) -> None:
    said = (
        f"the row filter answering gave {len(answers)} answers, "
        f"{answers.count(None)} of them null, for 1 rows"
    )
    plan = values([{"k": 1}]).filter_ordered(Answering(answers))
    for executor in (ArrowEngine(), engine):
        for each in (plan, plan.sort("k")):  # on Spark: here, and in a worker
            with pytest.raises(EvaluationError) as caught:
                list(executor.execute(each))
            assert (caught.value.message, caught.value.engine) == (said, executor.name)


def test_a_row_filter_that_fails_leaves_nothing_open(spark: Any) -> None:
    def stored() -> int:
        return int(spark.sparkContext._jsc.sc().getPersistentRDDs().size())

    told: list[Any] = []
    before = stored()
    engine = SparkEngine(spark, progress=told.append)
    with pytest.raises(EvaluationError) as caught:
        list(engine.execute(ROWS.filter_ordered(Answering([True]))))
    assert caught.value.__traceback__ is not None, "it holds the frames in which it was raised"
    assert told[-1].done
    assert stored() == before


def test_rows_that_a_filter_drops_cause_no_errors(run_rows: Any) -> None:
    plan = values([{"k": 1}, {"k": 0}, {"k": 1}]).sort(col("k").desc())
    once = plan.filter_ordered(FirstOfEach()).head(1).select((lit_one() / col("k")).alias("x"))
    assert run_rows(once) == [(1.0,)]


def lit_one() -> Any:
    from millpond.plan.expr import lit

    return lit(1)


def test_a_row_filter_inside_a_plan_runs_in_a_worker(run_rows: Any, engine: Any) -> None:
    row_filter = FirstOfEach()
    plan = ROWS.filter_ordered(row_filter).aggregate(n=agg.count(), s=agg.sum("v"))
    assert run_rows(plan) == [(4, 8)]
    assert row_filter.runs == []
    assert run_rows(ROWS.filter_ordered(FirstOfEach()), ordered=False) == [
        *((2, 0), (1, 1), (None, 2), (3, 5)),
    ]
    assert "MapInArrow" in engine.explain(plan)


def test_stateful_functions_see_rows_in_order(run_rows: Any) -> None:
    plan = ROWS.sort(col("v").desc()).stateful("total", Running(), "v")
    assert run_rows(plan) == [
        *((3, 5, 5), (1, 4, 9), (2, 3, 12), (None, 2, 14), (1, 1, 15), (2, 0, 15)),
    ]


def test_with_a_filter_and_one_state_per_key(run_rows: Any) -> None:
    plan = ROWS.stateful("t", Running(), "v", where=col("v") > 0, partition_by=["k"])
    plan = plan.stateful("u", Running(), "t", partition_by=["k"])
    assert run_rows(plan) == [
        *((2, 0, 0, 0), (1, 1, 1, 1), (None, 2, 2, 2)),
        *((2, 3, 3, 3), (1, 4, 5, 6), (3, 5, 5, 5)),
    ]


def test_keys_that_are_equal_share_their_state(run_rows: Any) -> None:
    nan = float("nan")
    rows = [{"k": k, "v": 1} for k in (nan, 0.0, -0.0, nan, None, None)]
    plan = values(rows, Struct.of(k=DOUBLE, v=LONG)).stateful(
        "t", Running(), "v", partition_by=["k"]
    )
    assert [t for _, _, t in run_rows(plan)] == [1, 1, 2, 2, 1, 2]


def test_no_rows_at_all(run_rows: Any) -> None:
    empty = values([], Struct.of(k=STRING, v=LONG))
    row_filter = FirstOfEach()
    assert run_rows(empty.filter_ordered(row_filter)) == []
    assert row_filter.runs[0].is_finished
    assert run_rows(empty.stateful("t", Running(), "v")) == []


def test_threads_pack_at_the_same_time() -> None:
    from millpond.engine.spark.worker import pack

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            packed = list(pool.map(pack, [Running()] * 2000))
    finally:
        sys.setswitchinterval(before)
    assert all(b"create_instance" in each for each in packed), "without its code"


def test_what_is_sent_to_workers_needs_no_package_of_ours(tmp_path: Any) -> None:
    from pyspark import cloudpickle

    from millpond.engine.spark.worker import CallStateful, StatefulCall, pack, send_by_value

    send_by_value()
    call = StatefulCall(pack(Running()), ("a",), None, "r", pa.int64())
    pickler: Any = cloudpickle
    sent = pickler.dumps(CallStateful((call,), (), ("a",)))
    (tmp_path / "sent").write_bytes(sent)
    code = (
        "import sys; sys.modules['millpond'] = None\n"
        "import pyarrow as pa\n"
        "from pyspark import cloudpickle\n"
        f"call = cloudpickle.loads(open({str(tmp_path / 'sent')!r}, 'rb').read())\n"
        "batch = pa.record_batch({'a': [1, 2]})\n"
        "assert [b.to_pydict() for b in call(iter([batch]))] == [{'a': [1, 2], 'r': [1, 3]}]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
