"""Counters say what an execution decoded, skipped and read: exact for one run, and as totals.

>>> with collect_stats() as seen:
...     Counters.begin().add("batches_decoded", 2)
>>> seen.batches_decoded
2
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Counters:
    """What one execution did, counted as it happens. A Parquet row group is a batch here."""

    files_opened: int = 0
    files_pruned: int = 0
    batches_decoded: int = 0
    batches_pruned: int = 0
    columns_decoded: int = 0
    columns_skipped: int = 0
    early_exit_batches_skipped: int = 0
    rows_decoded: int = 0
    rows_emitted: int = 0
    bytes_read: int = 0
    spill_bytes: int = 0
    peak_buffer_rows: int = 0
    _listeners: tuple[Counters, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def begin(cls) -> Counters:
        """Counters for a new execution, which also feed the totals and every open collector."""
        return cls(_listeners=(_TOTAL, *_COLLECTORS.get()))

    def add(self, name: str, amount: int = 1) -> None:
        """Count something."""
        with _LOCK:
            for target in (self, *self._listeners):
                setattr(target, name, getattr(target, name) + amount)

    def peak(self, rows: int) -> None:
        """Note how many rows are buffered now; the largest number is kept."""
        with _LOCK:
            for target in (self, *self._listeners):
                target.peak_buffer_rows = max(target.peak_buffer_rows, rows)

    def to_dict(self) -> dict[str, int]:
        """The numbers by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if not f.name.startswith("_")}


_LOCK = Lock()
_TOTAL = Counters()
_COLLECTORS: ContextVar[tuple[Counters, ...]] = ContextVar("millpond_collectors", default=())


@contextmanager
def collect_stats() -> Iterator[Counters]:
    """Count what the executions begun inside this block do, and nothing else.

    The block is this thread's (or task's): a thread that is started inside counts too if it runs
    in a copy of the context, `Thread(target=contextvars.copy_context().run, args=(work,))`.
    `asyncio.to_thread` does that by itself.
    """
    seen = Counters()
    token = _COLLECTORS.set((*_COLLECTORS.get(), seen))
    try:
        yield seen
    finally:
        _COLLECTORS.reset(token)


def stats() -> dict[str, int]:
    """The totals of this process since it began or since `reset_stats`."""
    return _TOTAL.to_dict()


def reset_stats() -> None:
    """Set the totals to zero."""
    with _LOCK:
        for name in _TOTAL.to_dict():
            setattr(_TOTAL, name, 0)
