"""Files that other threads read ahead, while the rows of the files before them are used.

Parquet's reader works without holding Python back, so that several files are decoded at once. Rows
come in the order of the files all the same.
"""

from __future__ import annotations

import atexit
import os
from collections import deque
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    import pyarrow as pa

Item = TypeVar("Item")

_HELD_BYTES: Final = 12 << 20
"""Of each item so much waits to be used, at most, or one batch that is larger. As many items wait
as there are threads."""


def read_ahead(
    items: Iterator[Item], read: Callable[[Item], Iterator[pa.RecordBatch]], threads: int
) -> Iterator[pa.RecordBatch]:
    """The batches of items, in their order, with so many items being read at a time.

    The first one is read here, and others only when it has been used up: who wants few rows reads
    few. What goes wrong with an item is raised when its turn has come.

    """
    for first in items:
        yield from read(first)
        break
    for second in items:
        readers = _Readers(second, items, read, threads)
        try:
            yield from readers.batches()
        finally:
            readers.stop()


class _Taken:
    """An item that a thread has taken: what it has read of it, and whether that is all."""

    def __init__(self) -> None:
        self.batches: deque[pa.RecordBatch] = deque()
        self.bytes = 0
        self.is_done = False
        self.error: BaseException | None = None


class _Readers(Generic[Item]):
    """Threads that each take the next item when they are done with one.

    All that they share is looked at and changed while holding `_changed`.
    """

    def __init__(
        self,
        first: Item,
        others: Iterator[Item],
        read: Callable[[Item], Iterator[pa.RecordBatch]],
        threads: int,
    ) -> None:
        self._first: list[Item] = [first]
        self._others = others
        self._read = read
        self._changed = Condition()
        self._taken: deque[_Taken] = deque()
        self._is_over = False
        """Whether there are no more items, or nothing is wanted any more."""
        self._is_wanted = True
        # The interpreter would wait for threads that are no daemons before anything can stop them.
        self._threads = [
            Thread(target=self._run, name="millpond-read-ahead", daemon=True)
            for _ in range(threads)
        ]
        for thread in self._threads:
            thread.start()
        _RUNNING.add(self)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What was read, item by item."""
        while (taken := self._oldest()) is not None:
            while (batch := self._next_of(taken)) is not None:
                yield batch

    def stop(self) -> None:
        """Read nothing more, and wait until what is being read has been."""
        with self._changed:
            self._is_wanted = False
            self._is_over = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _oldest(self) -> _Taken | None:
        """The next item in order; None after the last."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken or self._is_over)
            if not self._taken:
                return None
            self._changed.notify_all()
            return self._taken.popleft()

    def _next_of(self, taken: _Taken) -> pa.RecordBatch | None:
        with self._changed:
            self._changed.wait_for(lambda: taken.batches or taken.is_done)
            if taken.batches:
                batch = taken.batches.popleft()
                taken.bytes -= batch.nbytes
                self._changed.notify_all()
                return batch
        if taken.error is not None:
            raise taken.error
        return None

    def _run(self) -> None:
        while (begun := self._take()) is not None:
            taken, batches = begun
            error: BaseException | None = None
            try:
                for batch in batches:
                    if not self._put(taken, batch):
                        break
            except BaseException as failure:  # noqa: BLE001 - raised again where it is used
                error = failure
            finally:
                batches.close()
            with self._changed:
                taken.error, taken.is_done = error, True
                self._changed.notify_all()

    def _take(self) -> tuple[_Taken, Generator[pa.RecordBatch, None, None]] | None:
        """The next item, for a thread, once there is room for it."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or len(self._taken) < len(self._threads))
            if self._is_over:
                return None
            taken = _Taken()
            try:
                item = self._first.pop() if self._first else next(self._others)
            except StopIteration:
                self._is_over = True
                self._changed.notify_all()
                return None
            except BaseException as error:  # noqa: BLE001 - raised again where it is used
                taken.error, taken.is_done, self._is_over = error, True, True
                self._taken.append(taken)
                self._changed.notify_all()
                return None
            self._taken.append(taken)
            self._changed.notify_all()
        return taken, _each(self._read, item)

    def _put(self, taken: _Taken, batch: pa.RecordBatch) -> bool:
        """Hand over a batch when there is room; False if it is not wanted any more."""
        size = batch.nbytes
        with self._changed:
            self._changed.wait_for(
                lambda: not taken.bytes or taken.bytes + size <= _HELD_BYTES or not self._is_wanted
            )
            taken.batches.append(batch)
            taken.bytes += size
            self._changed.notify_all()
            return self._is_wanted


def _each(
    read: Callable[[Item], Iterator[pa.RecordBatch]], item: Item
) -> Generator[pa.RecordBatch, None, None]:
    """A generator over what is read, so that it can be closed."""
    yield from read(item)


_RUNNING: Final[WeakSet[_Readers[Any]]] = WeakSet()


# A fork has none of the threads, and may have their locks as they were held.
os.register_at_fork(after_in_child=_RUNNING.clear)


@atexit.register
def _stop_all() -> None:
    """A thread that is inside of Parquet's reader when the interpreter ends would crash it."""
    for readers in list(_RUNNING):
        readers.stop()
