"""Rows by position: the last ones, and those at given places.

Right above a Parquet scan, footers say which row groups hold them, and no other is decoded.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from millpond.base.errors import EvaluationError, SourceError
from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.source.files import ENGINE
from millpond.engine.arrow.source.groups import initial_rows, open_groups
from millpond.engine.arrow.source.parquet import ParquetSource
from millpond.engine.arrow.source.scan import describe_spec, may_match
from millpond.engine.arrow.source.spec import concat, take

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps
    from millpond.engine.arrow.source.entry import Entry
    from millpond.engine.arrow.source.spec import ScanSpec


class Last(Operator):
    """The last rows of any input: as many batches are held as they need."""

    def __init__(self, source: Operator, count: int, context: Context) -> None:
        super().__init__(source)
        self.count = count
        self.context = context

    def run(self) -> Steps:
        """Hold the last batches, give them at the end."""
        held: deque[pa.RecordBatch] = deque()
        rows = 0
        while self.count and (batch := (yield self.inputs[0])) is not None:
            held.append(batch)
            rows += batch.num_rows
            while rows - held[0].num_rows >= self.count:
                rows -= held.popleft().num_rows
            self.context.counters.peak(rows)
        yield from _cut_front(list(held), rows - self.count)

    def describe(self) -> str:
        """How many."""
        return f"Last {self.count}"


class LastOfParquet(Operator):
    """The last rows of a Parquet scan: row groups are read from the end, until it is enough."""

    def __init__(
        self, spec: ScanSpec, entries: Sequence[Entry], count: int, context: Context
    ) -> None:
        super().__init__()
        self.spec = spec
        self.entries = entries
        self.count = count
        self.context = context

    def run(self) -> Steps:
        """Backwards; what lies before is not needed."""
        found: list[pa.RecordBatch] = []
        rows, left = 0, len(self.entries)
        for entry in reversed(self.entries):
            if rows >= self.count:
                break
            left -= 1
            for batch in self._backwards(entry, self.count - rows):
                found.append(batch)
                rows += batch.num_rows
        self.context.counters.add("early_exit_batches_skipped", left)
        found.reverse()
        yield from _cut_front(found, rows - self.count)

    def _backwards(self, entry: Entry, wanted: int) -> Iterator[pa.RecordBatch]:
        spec, context = self.spec, self.context
        if not may_match(entry, spec):
            context.counters.add("files_pruned")
            return
        source = ParquetSource.of(entry, spec, context)
        try:
            groups = open_groups(source, spec, context)
            while groups and wanted > 0:
                group = source.group(groups.pop())
                rows = spec.survivors(
                    group, initial_rows(entry, source, group.number), context.note
                )
                context.note(spec.scan_node, group.rows)
                if rows is None or len(rows):
                    batch = spec.result(group, rows)
                    wanted -= batch.num_rows
                    yield batch
            context.counters.add("early_exit_batches_skipped", len(groups))
        finally:
            source.close()

    def describe(self) -> str:
        """How many, and what is decoded when."""
        text = describe_spec(self.spec)
        return f"Last {self.count} of Parquet [{len(self.entries)} files], from the end{text}"


def _cut_front(batches: list[pa.RecordBatch], surplus: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if surplus >= batch.num_rows:
            surplus -= batch.num_rows
        else:
            yield batch if surplus <= 0 else batch.slice(surplus)
            surplus = 0


class Pick(Operator):
    """The rows at given positions of any input, in the order given."""

    def __init__(self, source: Operator, indices: tuple[int, ...], context: Context) -> None:
        super().__init__(source)
        self.indices = indices
        self.context = context

    def run(self) -> Steps:
        """Until the last position has passed."""
        picked = Picked(self.indices)
        seen = 0
        while seen < picked.end and (batch := (yield self.inputs[0])) is not None:
            picked.add(batch, picked.local(seen, batch.num_rows))
            seen += batch.num_rows
            self.context.counters.peak(picked.held)
        self.inputs[0].close()
        yield from picked.finish(seen)

    def describe(self) -> str:
        """How many positions."""
        return f"Pick {len(self.indices)} positions"


class PickOfParquet(Operator):
    """The rows at given positions of a Parquet scan without conditions."""

    def __init__(
        self,
        spec: ScanSpec,
        entries: Sequence[Entry],
        indices: tuple[int, ...],
        context: Context,
    ) -> None:
        super().__init__()
        self.spec = spec
        self.entries = entries
        self.indices = indices
        self.context = context

    def run(self) -> Steps:
        """File by file until the last position has passed; only row groups that hold one."""
        picked = Picked(self.indices)
        seen = 0
        for entry in self.entries:
            outside = entry.rows is not None and not len(picked.local(seen, entry.rows))
            if seen >= picked.end or outside:
                self.context.counters.add("early_exit_batches_skipped")
                seen += entry.rows or 0
            else:
                seen = self._from_file(entry, picked, seen)
        yield from picked.finish(seen)

    def _from_file(self, entry: Entry, picked: Picked, seen: int) -> int:
        source = ParquetSource.of(entry, self.spec, self.context)
        try:
            if entry.rows not in (None, source.metadata.num_rows):
                message = f"has {source.metadata.num_rows} rows, the plan says {entry.rows}"
                raise SourceError(f"{entry.path} {message}", engine=ENGINE, path=entry.path)
            for g, rows in enumerate(source.group_rows.tolist()):
                local = picked.local(seen, rows)
                if len(local):
                    group = source.group(g)
                    self.context.note(self.spec.scan_node, group.rows)
                    picked.add(self.spec.result(group, local), None)
                    self.context.counters.peak(picked.held)
                else:
                    self.context.counters.add("early_exit_batches_skipped")
                seen += rows
        finally:
            source.close()
        return seen

    def describe(self) -> str:
        """How many positions, and what is decoded."""
        return f"Pick {len(self.indices)} positions of Parquet" + describe_spec(self.spec)


class Picked:
    """Rows gathered in the order of their positions, then given in the order asked for."""

    def __init__(self, indices: Sequence[int]) -> None:
        self.indices = np.array(indices, np.int64)
        self.wanted, self._inverse = np.unique(self.indices, return_inverse=True)
        self.end = int(self.wanted[-1]) + 1 if len(self.wanted) else 0
        self.held = 0
        self._rows: list[pa.RecordBatch] = []

    def local(self, start: int, count: int) -> NDArray[np.int64]:
        """Which rows of a stretch are wanted, counted from its start."""
        first, last = np.searchsorted(self.wanted, (start, start + count))
        found: NDArray[np.int64] = self.wanted[first:last] - start
        return found

    def add(self, batch: pa.RecordBatch, rows: NDArray[np.int64] | None) -> None:
        """Rows of a batch; None takes them all."""
        if rows is None or len(rows):
            batch = batch if rows is None else take(batch, rows)
            self._rows.append(batch)
            self.held += batch.num_rows

    def finish(self, seen: int) -> Iterator[pa.RecordBatch]:
        """All wanted rows; a position past the end is an error that names it."""
        if self.end > seen:
            missing = int(self.indices[self.indices >= seen][0])
            raise EvaluationError(
                f"there is no row at position {missing}: there are {seen:,}",
                engine=ENGINE,
                hint="positions count from 0",
            )
        if self._rows:
            yield take(concat(self._rows), self._inverse)
