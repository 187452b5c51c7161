"""A run as its reader holds it: what `plan.execute()` returns, over any engine's `Execution`."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

from millpond.base.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    import pyarrow as pa

    from millpond.plan.counters import Counters
    from millpond.plan.executor import Execution, Observation


class Reading:
    """The batches of one run, once. Threads that share it wait for each other.

    >>> from millpond.plan.make import values
    >>> run = values([{"a": 1}]).execute(engine="arrow")
    >>> [batch.num_rows for batch in run]
    [1]
    >>> list(run)
    Traceback (most recent call last):
    ...
    millpond.base.errors.EngineError: this run on the arrow engine is over
      hint: a run gives its batches once: execute the plan again, or keep them with to_arrow()
    """

    def __init__(self, run: Execution, engine: str) -> None:
        self._run = run
        self._engine = engine
        self._lock = RLock()
        self._is_over = False

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch; it is there before the first one."""
        return self._run.schema

    @property
    def counters(self) -> Counters:
        """What this run has done so far."""
        return self._run.counters

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._is_over:
            raise EngineError(
                f"this run on the {self._engine} engine is over",
                engine=self._engine,
                hint="a run gives its batches once: execute the plan again, "
                "or keep them with to_arrow()",
            )
        return self

    def __next__(self) -> pa.RecordBatch:
        with self._lock:
            try:
                return next(self._run)
            except BaseException:
                self._is_over = True
                raise

    def cancel(self) -> None:
        """Stop, from any thread: who waits for a batch soon gets a `RunCancelledError`."""
        self._run.cancel()

    def close(self) -> None:
        """Stop and release everything; closing twice is harmless.

        If another thread waits for a batch, the run is cancelled first.
        """
        if not self._lock.acquire(blocking=False):
            self._run.cancel()
            self._lock.acquire()
        try:
            self._is_over = True
            self._run.close()
        finally:
            self._lock.release()

    def observations(self) -> tuple[Observation, ...]:
        """What was seen of each step so far."""
        return self._run.observations()

    def __enter__(self) -> Reading:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
