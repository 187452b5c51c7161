"""A run is read once, by threads that wait for each other, and closed from anywhere."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.base.errors import EngineError, EvaluationError, RunCancelledError
from millpond.base.settings import Settings
from millpond.engine.arrow import ArrowEngine
from millpond.plan.expr import col
from millpond.plan.make import values

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = values(pa.table({"a": range(1000)}))
SMALL = ArrowEngine(settings=Settings.load(env={}, arrow_batch_rows=10))


def test_a_second_reading_is_refused() -> None:
    run = ROWS.execute(engine=SMALL)
    first = next(run)
    assert first.num_rows + sum(batch.num_rows for batch in run) == 1000
    assert next(run, None) is None
    with pytest.raises(EngineError, match="over") as caught:
        list(run)
    assert "execute the plan again" in str(caught.value.hint)
    assert run.counters.rows_emitted == 1000
    assert ROWS.execute(engine=SMALL) is not run


def test_so_is_one_after_an_error_or_the_end_of_a_block() -> None:
    failed = ROWS.select(b=col("a") / (col("a") - 500)).execute(engine=SMALL)
    with pytest.raises(EvaluationError):
        list(failed)
    with pytest.raises(EngineError, match="over"):
        list(failed)
    with ROWS.execute(engine=SMALL) as closed:
        next(closed)
    closed.close()
    with pytest.raises(EngineError, match="over"):
        list(closed)


def test_threads_share_the_batches() -> None:
    run = ROWS.execute(engine=SMALL)
    batches = iter(run)
    start = threading.Barrier(8)

    def read() -> list[int]:
        start.wait()
        found: list[int] = []
        while (batch := next(batches, None)) is not None:
            found += batch["a"].to_pylist()
        return found

    with ThreadPoolExecutor(8) as pool:
        found = [done.result() for done in [pool.submit(read) for _ in range(8)]]
    assert sorted(value for one in found for value in one) == list(range(1000))


class Slow:
    """A run whose one batch comes when it is cancelled, as an error."""

    schema = pa.schema([])
    counters: Any = None

    def __init__(self) -> None:
        self.is_waiting, self.is_cancelled = threading.Event(), threading.Event()
        self.seen: list[str] = []

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        self.is_waiting.set()
        assert self.is_cancelled.wait(60)
        self.seen.append("stopped")
        raise RunCancelledError("slow")

    def cancel(self) -> None:
        self.is_cancelled.set()

    def close(self) -> None:
        self.seen.append("closed")

    def observations(self) -> tuple[Any, ...]:
        return ()


def test_closing_a_run_that_another_thread_waits_for_cancels_it() -> None:
    from millpond.plan.reading import Reading

    slow = Slow()
    run = Reading(slow, "slow")
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(next, run)
        assert slow.is_waiting.wait(60)
        run.close()
        with pytest.raises(RunCancelledError):
            reader.result()
    assert slow.seen == ["stopped", "closed"]
