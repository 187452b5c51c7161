"""Joins: the right side in memory with its keys numbered, the left side streaming past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millpond.base.errors import BudgetExceededError
from millpond.engine.arrow.codes import to_code
from millpond.engine.arrow.context import HOLDING_SHARE
from millpond.engine.arrow.eval import evaluate
from millpond.engine.arrow.joinkeys import JoinKeys
from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.source.batch import batch_of
from millpond.engine.arrow.source.spec import concat, take
from millpond.plan.arrow import to_arrow_schema

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from numpy.typing import NDArray

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps
    from millpond.plan.rows import Join

_MOST_GATHERED = 1 << 20


class JoinRows(Operator):
    """Pairs of rows whose keys are equal: in the left side's order, then the right side's."""

    def __init__(self, left: Operator, right: Operator, node: Join, context: Context) -> None:
        super().__init__(left, right)
        self.join = node
        self.context = context

    def run(self) -> Steps:
        """Read the right side, then let the left side pass."""
        right = yield from self._right_side()
        codes = [to_code(evaluate(pair[1], right)) for pair in self.join.keys]
        keys = JoinKeys(codes, nulls_equal=self.join.nulls_equal)
        matched = np.zeros(right.num_rows, bool)
        # Looking keys up costs a pass over the right side's different ones: let it be worth it.
        enough = min(right.num_rows, _MOST_GATHERED)
        gathered: list[pa.RecordBatch] = []
        held, more = 0, True
        while more:
            batch = yield self.inputs[0]
            more = batch is not None
            if batch is not None:
                gathered.append(batch)
                held += batch.num_rows
            if gathered and (not more or held >= enough):
                left, gathered, held = concat(gathered), [], 0
                yield from self._matches(left, right, keys, matched)
        if self.join.how == "full":
            rest = np.flatnonzero(~matched)
            if len(rest):
                yield self._pairs(None, right, np.full(len(rest), -1), rest)

    def _right_side(self) -> Generator[Operator, Any, pa.RecordBatch]:
        limit = self.context.buffer_rows(self.join.right.schema, share=HOLDING_SHARE)
        batches: list[pa.RecordBatch] = []
        rows = 0
        while (batch := (yield self.inputs[1])) is not None:
            rows += batch.num_rows
            if rows > limit:
                raise BudgetExceededError(
                    "arrow.max_buffer_rows",
                    required=rows,
                    limit=limit,
                    suggestion="put the smaller side right, raise the limit, or use engine='spark'",
                )
            self.context.counters.peak(rows)
            batches.append(batch)
        if batches:
            return concat(batches)
        schema = to_arrow_schema(self.join.right.schema)
        return pa.RecordBatch.from_pylist([], schema=schema)

    def _matches(
        self,
        left: pa.RecordBatch,
        right: pa.RecordBatch,
        keys: JoinKeys,
        matched: NDArray[np.bool_],
    ) -> Iterator[pa.RecordBatch]:
        def key(number: int, rows: NDArray[np.int64] | None) -> pa.Array:
            batch = left if rows is None else take(left, rows)
            return to_code(evaluate(self.join.keys[number][0], batch))

        numbers = keys.look_up(key)
        counts = keys.partners(numbers)
        how = self.join.how
        if how in ("semi", "anti"):
            kept = np.flatnonzero(counts > 0 if how == "semi" else counts == 0)
            if len(kept):
                yield left if len(kept) == left.num_rows else take(left, kept)
            return
        given = counts if how == "inner" else np.maximum(counts, 1)
        ends = np.cumsum(given)
        total = int(ends[-1])
        for start in range(0, total, self.context.batch_rows):
            out = np.arange(start, min(start + self.context.batch_rows, total))
            rows = _rows_of(out, given, ends)
            found = counts[rows] > 0
            partner = np.full(len(out), -1, np.int64)
            nth = out - (ends[rows] - given[rows])
            partner[found] = keys.rows[keys.starts[numbers[rows[found]]] + nth[found]]
            if how == "full":
                matched[partner[found]] = True
            yield self._pairs(left, right, rows, partner)

    def _pairs(
        self,
        left: pa.RecordBatch | None,
        right: pa.RecordBatch,
        left_rows: NDArray[np.int64],
        right_rows: NDArray[np.int64],
    ) -> pa.RecordBatch:
        """Rows of both sides side by side; -1 is no row."""
        if left is None:
            schema = to_arrow_schema(self.join.left.schema)
            arrays = [pa.nulls(len(left_rows), field.type) for field in schema]
        else:
            arrays = [column.take(pa.array(left_rows)) for column in left.columns]
        missing = right_rows < 0
        chosen = pa.array(right_rows, mask=missing if missing.any() else None)
        arrays += [column.take(chosen) for column in right.columns]
        return batch_of(arrays, self.join.schema, len(left_rows))

    def describe(self) -> str:
        """The kind and the keys, and which side is held."""
        return f"Join {self.join.label()}: right side in memory, left side streaming"


def _rows_of(
    out: NDArray[np.int64], given: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The left rows that a stretch of the result comes from; each gives so many result rows."""
    first, last = np.searchsorted(ends, (out[0], out[-1]), side="right")
    counts = given[first : last + 1].copy()
    counts[-1] -= ends[last] - 1 - out[-1]
    counts[0] -= out[0] - (ends[first] - given[first])
    rows: NDArray[np.int64] = np.repeat(np.arange(first, first + len(counts)), counts)
    return rows
