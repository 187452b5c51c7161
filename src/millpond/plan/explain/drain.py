"""Taking a run's batches until its end or until a bound, of rows or of time, stops it."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from millpond.base.clock import SystemClock
from millpond.base.errors import RunCancelledError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.base.clock import Clock
    from millpond.plan.executor import Execution


def drain(
    run: Execution, max_rows: int | None, budget_ms: float | None, start: float, clock: Clock
) -> tuple[int, int, str | None]:
    """Take batches until the end or a bound: rows, batches, and what stopped it."""
    rows = batches = 0
    out_of_time = f"stopped after {budget_ms or 0:g} ms (time_budget_ms)"
    with _alarm(run, budget_ms, start, clock) as rang:
        while True:
            if max_rows is not None and rows >= max_rows:
                return max_rows, batches, f"stopped after {max_rows:,} rows (max_rows)"
            if budget_ms is not None and (clock.monotonic() - start) * 1000 >= budget_ms:
                return rows, batches, out_of_time
            try:
                batch = next(run, None)
            except RunCancelledError:
                if not rang.is_set():
                    raise
                return rows, batches, out_of_time
            if batch is None:
                return rows, batches, None
            rows += batch.num_rows
            batches += 1


@contextlib.contextmanager
def _alarm(
    run: Execution, budget_ms: float | None, start: float, clock: Clock
) -> Iterator[threading.Event]:
    """Cancel the run when its time is up, also while a batch is waited for.

    A clock that a test moves wakes nobody: by that one, time is looked at between batches.
    """
    rang = threading.Event()
    if budget_ms is None or not isinstance(clock, SystemClock):
        yield rang
        return

    def ring() -> None:
        rang.set()
        run.cancel()

    left = max(0.0, start + budget_ms / 1000 - clock.monotonic())
    timer = threading.Timer(min(left, threading.TIMEOUT_MAX), ring)
    timer.daemon = True
    timer.start()
    try:
        yield rang
    finally:
        timer.cancel()
        timer.join()
