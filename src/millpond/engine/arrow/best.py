"""The best rows so far by their keys: what top-k and samples of a fixed size have in common.

Rows are gathered until there are twice as many as wanted, then cut down; in between, a row whose
first key can't be among the best any more is not even gathered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.codes import Order, permutation
from millpond.engine.arrow.source.spec import concat, take

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

_FEWEST_GATHERED = 4_096


class Best:
    """The first `count` of all rows added, in order; equal rows as they were added."""

    def __init__(self, count: int, orders: Sequence[Order]) -> None:
        self.count = count
        self.orders = orders
        self._codes: list[list[pa.Array]] = []
        self._rows: list[pa.RecordBatch] = []
        self._held = 0
        self._bound: pa.Scalar | None = None
        self._expected: pa.Scalar | None = None

    @property
    def held(self) -> int:
        """How many rows are held now."""
        return self._held

    @property
    def bound(self) -> pa.Scalar | None:
        """The first key of the last of the best; None before there are enough."""
        return self._bound

    @property
    def expected(self) -> pa.Scalar | None:
        """What `expect` was told."""
        return self._expected

    def expect(self, bound: pa.Scalar) -> None:
        """Say that as many rows as wanted are at least as good as this, by their first key."""
        self._expected = bound

    def candidates(self, code: pa.Array) -> NDArray[np.int64] | None:
        """Which rows may be among the best, by their first key; None stands for all."""
        masks = []
        if self._expected is not None:
            masks.append(self._mask(code, self._expected, ties=True))
        if self._bound is not None:
            # With one key, an equal row that comes later has lost already.
            masks.append(self._mask(code, self._bound, ties=len(self.orders) > 1))
        known = [mask for mask in masks if mask is not None]
        if not known:
            return None
        mask = known[0] if len(known) == 1 else pc.and_(*known)
        kept: NDArray[np.int64] = pc.indices_nonzero(mask).to_numpy().view("int64")
        return None if len(kept) == len(code) else kept

    def _mask(self, code: pa.Array, bound: pa.Scalar, *, ties: bool) -> pa.Array | None:
        order = self.orders[0]
        if not bound.is_valid:
            return code.is_null() if order.nulls_first else None
        names = ("greater", "greater_equal") if order.descending else ("less", "less_equal")
        return pc.call_function(names[ties], [code, bound]).fill_null(order.nulls_first)

    def add(self, codes: list[pa.Array], rows: pa.RecordBatch) -> None:
        """More rows with their keys."""
        kept = self.candidates(codes[0])
        if kept is None:
            self.gather(codes, rows)
        elif len(kept):
            self.gather([code.take(pa.array(kept)) for code in codes], take(rows, kept))

    def gather(self, codes: list[pa.Array], rows: pa.RecordBatch) -> None:
        """Rows that are all candidates."""
        self._codes.append(codes)
        self._rows.append(rows)
        self._held += rows.num_rows
        if self._held >= max(2 * self.count, _FEWEST_GATHERED):
            self._cut()

    def _cut(self) -> None:
        columns = [pa.concat_arrays(column) for column in zip(*self._codes, strict=True)]
        order = pa.array(permutation(columns, self.orders)[: self.count])
        columns = [column.take(order) for column in columns]
        rows = take(concat(self._rows), order.to_numpy())
        self._codes, self._rows, self._held = [columns], [rows], rows.num_rows
        if self._held == self.count and self.count:
            self._bound = columns[0][-1]

    def finish(self) -> pa.RecordBatch | None:
        """The best rows, in order; None if there were none at all."""
        if not self._rows or not self.count:
            return None
        self._cut()
        return self._rows[0]
