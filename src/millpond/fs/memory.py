"""A persistence in this process's memory: for tests, and the model that the OpLog is held to."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from millpond.base.clock import Clock, SystemClock
from millpond.fs.entry import to_micros
from millpond.fs.persistence import seq_of
from millpond.fs.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millpond.fs.entry import Row
    from millpond.fs.persistence import Commit


@dataclass(frozen=True)
class _Rows:
    """The rows of the first transactions."""

    all: tuple[Row, ...]
    contents: dict[tuple[str, str, int], bytes]

    @cached_property
    def _by_part(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self.all:
            found.setdefault(row.part_id, []).append(row)
        return found

    def rows(self, part_id: str) -> Iterable[Row]:
        """Everything that happened in a directory."""
        return self._by_part.get(part_id, ())

    def content(self, row: Row) -> bytes | None:
        """What was written inline with this row."""
        return self.contents.get((row.part_id, row.node_id, row.txn_seq))


class _Transaction(NamedTuple):
    time: int
    rows: tuple[Row, ...]


class MemoryPersistence:
    """Transactions in a list.

    >>> MemoryPersistence().latest().txn_seq
    0
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._transactions: list[_Transaction] = []
        self._contents: dict[tuple[str, str, int], bytes] = {}

    def latest(self) -> Tree:
        """The pond as it is now."""
        return self._after(len(self._transactions))

    def refresh(self, tree: Tree) -> Tree:
        """The pond as it is now."""
        return tree if tree.txn_seq == len(self._transactions) else self.latest()

    def as_of(self, *, txn_seq: int | None = None, micros: int | None = None) -> Tree:
        """The pond as it was after a transaction, or at a time."""
        seq = seq_of(txn_seq, last=len(self._transactions))
        if micros is not None:
            seq = min(seq, sum(known.time <= micros for known in self._transactions))
        return self._after(seq)

    def _after(self, seq: int) -> Tree:
        rows = tuple(row for known in self._transactions[:seq] for row in known.rows)
        return Tree(_Rows(rows, self._contents), version=seq, txn_seq=seq)

    def commit(self, base: Tree, rows: Sequence[Row], commit: Commit) -> Tree | None:
        """Write one transaction behind a tree; None if another one came first."""
        del commit
        with self._lock:
            if base.txn_seq != len(self._transactions):
                return None
            last = self._transactions[-1].time if self._transactions else 0
            time = max(to_micros(self._clock.now()), last + 1)
            seq = base.txn_seq + 1
            for row in rows:
                if row.content is not None:
                    self._contents[row.part_id, row.node_id, seq] = row.content
            made = (replace(row, txn_seq=seq, timestamp=time, content=None) for row in rows)
            self._transactions.append(_Transaction(time, tuple(made)))
        return self._after(seq)
