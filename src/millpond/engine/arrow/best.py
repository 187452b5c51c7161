"""The best rows so far by their keys: what top-k and samples of a fixed size have in common.

Rows are gathered until there are twice as many as wanted, then cut down; in between, a row whose
first key can't be among the best any more is not even gathered. `Best` knows all keys; `Finalists`
knows the first, for keys that are better looked at late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.codes import Order, permutation
from millpond.engine.arrow.source.spec import concat, take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_FEWEST_GATHERED = 4_096


class Gathered:
    """Rows with their keys that may be among the first `count`, as they were added."""

    def __init__(self, count: int, orders: Sequence[Order], *, ties: bool) -> None:
        self.count = count
        self.orders = orders
        self.ties = ties
        """Whether a row may still be among the best if its first key equals that of the last."""
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
            masks.append(self._mask(code, self._bound, ties=self.ties))
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
        if self._held >= self._room:
            self._cut()

    @property
    def _room(self) -> int:
        """How many rows are gathered before they are cut down."""
        return max(2 * self.count, _FEWEST_GATHERED)

    def _cut(self) -> None:
        """Leave out what is known not to be among the best."""
        raise NotImplementedError

    def _joined(self) -> tuple[list[pa.Array], pa.RecordBatch]:
        codes = [pa.concat_arrays(column) for column in zip(*self._codes, strict=True)]
        return codes, concat(self._rows)

    def _hold(self, codes: list[pa.Array], rows: pa.RecordBatch) -> None:
        self._codes, self._rows, self._held = [codes], [rows], rows.num_rows


class Best(Gathered):
    """The first `count` of all rows added, in order; equal rows as they were added."""

    def __init__(self, count: int, orders: Sequence[Order]) -> None:
        # With one key, an equal row that comes later has lost already.
        super().__init__(count, orders, ties=len(orders) > 1)

    def _cut(self) -> None:
        codes, rows = self._joined()
        order = permutation(codes, self.orders)[: self.count]
        codes = [code.take(pa.array(order)) for code in codes]
        self._hold(codes, take(rows, order))
        if self._held == self.count and self.count:
            self._bound = codes[0][-1]

    def finish(self) -> pa.RecordBatch | None:
        """The best rows, in order; None if there were none at all."""
        if not self._rows or not self.count:
            return None
        self._cut()
        return self._rows[0]


class Finalists(Gathered):
    """The rows that may be among the first `count` by keys of which only the first is known.

    They are all whose first key is at least as good as the best `count` have it, in the order in
    which they were added.
    """

    def __init__(self, count: int, order: Order) -> None:
        super().__init__(count, [order], ties=True)

    @property
    def too_many(self) -> bool:
        """Whether so many are equal by the first key that the other keys have to tell now."""
        return self._held >= self._room

    def _cut(self) -> None:
        if self._held <= self.count:
            return
        (code,), rows = self._joined()
        self._bound = last_of_best(code, self.orders[0], self.count)
        mask = self._mask(code, self._bound, ties=True)
        if mask is not None:
            code, rows = code.filter(mask), rows.filter(mask)
        self._hold([code], rows)

    def finish(self) -> tuple[pa.Array, pa.RecordBatch, NDArray[np.bool_]] | None:
        """Their first keys, the rows, and which are among the best whatever the other keys say."""
        if not self._rows:
            return None
        self._cut()
        (code,), rows = self._joined()
        if self._held <= self.count:
            return code, rows, np.ones(self._held, np.bool_)
        assert self._bound is not None
        tied = pc.equal(code, self._bound).fill_null(False) if self._bound.is_valid else None
        better = code.is_valid() if tied is None else pc.invert(tied)
        return code, rows, better.to_numpy(zero_copy_only=False)


def last_of_best(code: pa.Array, order: Order, count: int) -> pa.Scalar:
    """The key of the last of the first `count` rows by this key; there are that many."""
    nulls = code.null_count
    if order.nulls_first:
        if nulls >= count:
            return pa.scalar(None, code.type)
        count -= nulls
    elif len(code) - nulls < count:
        return pa.scalar(None, code.type)
    known = code.drop_null() if nulls else code
    way = "descending" if order.descending else "ascending"
    return known[pc.select_k_unstable(known, count, [("", way)])[-1].as_py()]
