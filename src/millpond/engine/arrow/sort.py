"""Sorting and shuffling: keys and a permutation in memory, rows in sorted runs that may spill.

Each batch is put in order by itself and becomes (part of) a run. When the input has ended, the
keys of all rows give the final order, and every window of it is one stretch of each run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millpond.base.errors import BudgetExceededError
from millpond.engine.arrow.codes import Order, order_of, permutation, to_code
from millpond.engine.arrow.eval import evaluate
from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.runs import Runs
from millpond.engine.arrow.source.spec import concat, take
from millpond.engine.arrow.xxhash import position_hashes
from millpond.plan.arrow import to_arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps
    from millpond.plan.bound import BoundSortKey
    from millpond.plan.types import Struct

_RUN_BYTES = 256 << 20
"""Rows that are put in order together have not many more: no array of texts takes 2 GB."""


class SortRows(Operator):
    """All rows by their keys, stably, in bounded memory."""

    def __init__(self, source: Operator, schema: Struct, context: Context) -> None:
        super().__init__(source)
        self.schema = schema
        self.context = context
        self.orders: list[Order] = []

    def codes(self, batch: pa.RecordBatch, position: int) -> list[pa.Array]:
        """The key columns of a batch whose first row has this position."""
        raise NotImplementedError

    def run(self) -> Steps:
        """Gather sorted runs, find the final order, give window after window."""
        limit = self.context.buffer_rows(self.schema)
        runs = Runs(to_arrow_schema(self.schema), self.context, limit=limit)
        keys: list[list[pa.Array]] = []
        gathered: list[pa.RecordBatch] = []
        held = total = waiting = size = waiting_size = 0
        try:
            while (batch := (yield self.inputs[0])) is not None:
                if held + batch.num_rows > limit:
                    self._refuse_spilling(total + batch.num_rows, limit)
                    runs.spill()
                    held = waiting
                gathered.append(batch)
                total, held = total + batch.num_rows, held + batch.num_rows
                waiting += batch.num_rows
                size, waiting_size = size + batch.nbytes, waiting_size + batch.nbytes
                self.context.counters.peak(held)
                if waiting >= self.context.batch_rows or waiting_size >= _RUN_BYTES:
                    keys.append(self._add_run(runs, gathered, total - waiting))
                    gathered, waiting, waiting_size = [], 0, 0
            if gathered:
                keys.append(self._add_run(runs, gathered, total - waiting))
                gathered = []
            if keys:
                yield from self._emit(runs, keys, size // total)
        finally:
            runs.close()

    def _add_run(self, runs: Runs, batches: list[pa.RecordBatch], start: int) -> list[pa.Array]:
        """Put batches in order as one run; their keys in that order."""
        rows = concat(batches)
        codes = self.codes(rows, start)
        order = permutation(codes, self.orders)
        runs.add(take(rows, order))
        return [code.take(pa.array(order)) for code in codes]

    def _refuse_spilling(self, rows: int, limit: int) -> None:
        if self.context.settings.spill == "never":
            raise BudgetExceededError(
                "arrow.max_buffer_rows",
                required=rows,
                limit=limit,
                suggestion="set arrow.spill = auto, raise the limit, or sort fewer rows",
            )

    def _emit(
        self, runs: Runs, keys: list[list[pa.Array]], row_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        columns = [pa.chunked_array(list(column)) for column in zip(*keys, strict=True)]
        starts = np.concatenate([[0], np.cumsum([len(codes[0]) for codes in keys])])
        keys.clear()
        final = permutation(columns, self.orders)
        run_of = np.searchsorted(starts, final, side="right") - 1
        cursors = runs.cursors()
        # The other half of what may be held are pieces of runs that are not used up.
        half = max(1, self.context.buffer_rows(self.schema) // 2)
        window = min(self.context.batch_rows, half, max(1, _RUN_BYTES // max(row_bytes, 1)))
        for first in range(0, len(final), window):
            wanted = run_of[first : first + window]
            pieces: list[pa.RecordBatch] = []
            for run, count in enumerate(np.bincount(wanted).tolist()):
                if count:
                    pieces += cursors[run].read(count)
            if runs.spilled:
                self.context.counters.peak(len(wanted) + sum(c.held for c in cursors))
            yield _interleave(pieces, wanted)


def _interleave(pieces: list[pa.RecordBatch], run_of: NDArray[np.int64]) -> pa.RecordBatch:
    """Rows that lie run after run, each run in order, as the final order mixes them."""
    rows = concat(pieces)
    by_run = np.argsort(run_of, kind="stable")
    order = np.empty(len(by_run), np.int64)
    order[by_run] = np.arange(len(by_run))
    return take(rows, order)


class SortByKeys(SortRows):
    """All rows by expressions."""

    def __init__(
        self, source: Operator, keys: tuple[BoundSortKey, ...], schema: Struct, context: Context
    ) -> None:
        super().__init__(source, schema, context)
        self.keys = keys
        self.orders = [order_of(key) for key in keys]

    def codes(self, batch: pa.RecordBatch, position: int) -> list[pa.Array]:
        """The keys' values."""
        del position
        return [to_code(evaluate(key.expr, batch)) for key in self.keys]

    def describe(self) -> str:
        """The keys and how rows are held."""
        keys = ", ".join(map(str, self.keys))
        limit = self.context.buffer_rows(self.schema)
        return f"Sort {keys}: keys and order in memory; rows spill beyond {limit:,}"


class ShuffleRows(SortRows):
    """All rows by the hash of the seed and their position."""

    def __init__(self, source: Operator, seed: int, schema: Struct, context: Context) -> None:
        super().__init__(source, schema, context)
        self.seed = seed
        self.orders = [Order()]

    def codes(self, batch: pa.RecordBatch, position: int) -> list[pa.Array]:
        """The positions' hashes."""
        return [pa.array(position_hashes(self.seed, position, batch.num_rows))]

    def describe(self) -> str:
        """The seed."""
        return f"Shuffle seed {self.seed}: positions' hashes in memory, rows sorted by them"
