"""Join keys as whole numbers: the right side's different keys are numbered, the left's looked up.

-1 stands for a key without a partner. No step looks at a single row in Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

LeftKey: TypeAlias = "Callable[[int, NDArray[np.int64] | None], pa.Array]"
"""A key of the left side by its number, of these rows or (None) of all."""

_FEW = 4
"""Fewer than one in so many rows are few."""
_SPARSE = 8
"""A table of numbers by value may be so many times larger than there are values."""


class Numbering:
    """The different values of one key column of the right side, numbered from 0."""

    def __init__(self, column: pa.Array, *, nulls_equal: bool) -> None:
        different = column.unique()
        self.values = different if nulls_equal else different.drop_null()
        self._first = 0
        self._table = self._numbers_by_value()

    def __len__(self) -> int:
        return len(self.values)

    def _numbers_by_value(self) -> NDArray[np.int32] | None:
        """Whole numbers that lie close together are looked up in a table, without hashing."""
        if not at.is_integer(self.values.type) or self.values.null_count or not len(self.values):
            return None
        values = self.values.to_numpy()
        low, high = int(values.min()), int(values.max())
        if high - low > _SPARSE * len(values) + 65_536:
            return None
        self._first = low
        table = np.full(high - low + 1, -1, np.int32)
        table[values.astype(np.int64) - low] = np.arange(len(values), dtype=np.int32)
        return table

    def number(self, column: pa.Array) -> NDArray[np.int64]:
        """The number of each value; -1 for one that the right side does not have."""
        if self._table is None:
            found = pc.index_in(column, value_set=self.values).fill_null(-1)
            numbers: NDArray[np.int64] = found.to_numpy(zero_copy_only=False).astype(np.int64)
            return numbers
        values = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        outside = (values < self._first) | (values >= self._first + len(self._table))
        if column.null_count:
            outside |= column.is_null().to_numpy(zero_copy_only=False)
        places = np.where(outside, self._first, values) - self._first
        numbers = self._table[places].astype(np.int64)
        numbers[outside] = -1
        return numbers


class JoinKeys:
    """The numbered keys of the right side, and its rows by number."""

    def __init__(self, right: list[pa.Array], *, nulls_equal: bool) -> None:
        self._columns = [Numbering(column, nulls_equal=nulls_equal) for column in right]
        self._pairs: list[NDArray[np.int64]] = []
        numbers = self._columns[0].number(right[0])
        for column, numbering in zip(right[1:], self._columns[1:], strict=True):
            pairs = _pair(numbers, numbering.number(column), len(numbering))
            self._pairs.append(np.unique(pairs[pairs >= 0]))
            numbers = _look_up(pairs, self._pairs[-1])
        rows = np.argsort(numbers, kind="stable")
        # Those without a number come first; they have no partner.
        self.rows = rows[np.searchsorted(numbers[rows], 0) :]
        count = int(numbers.max()) + 1 if len(numbers) else 0
        self.starts = np.searchsorted(numbers[self.rows], np.arange(count + 1))

    def look_up(self, key: LeftKey) -> NDArray[np.int64]:
        """The numbers of the left side's keys.

        Few rows of the left may have a partner by the first key: then the others are asked for
        those rows alone.
        """
        found = self._columns[0].number(key(0, None))
        for number, (numbering, pairs) in enumerate(
            zip(self._columns[1:], self._pairs, strict=True), start=1
        ):
            open_ = np.flatnonzero(found >= 0)
            if not len(open_):
                return found
            rows = open_ if _FEW * len(open_) < len(found) else None
            first = found if rows is None else found[rows]
            second = numbering.number(key(number, rows))
            looked_up = _look_up(_pair(first, second, len(numbering)), pairs)
            if rows is None:
                found = looked_up
            else:
                found[rows] = looked_up
        return found

    def partners(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many right rows each key has."""
        counts = np.append(np.diff(self.starts), 0)
        found: NDArray[np.int64] = counts[numbers]  # -1 finds the zero at the end
        return found


def _pair(first: NDArray[np.int64], second: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    # Both are below 2^31, as Arrow arrays are, so that the product fits.
    pairs = first * width + second
    pairs[(first < 0) | (second < 0)] = -1
    return pairs


def _look_up(pairs: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    if not len(known):
        return np.full(len(pairs), -1, np.int64)
    found = np.searchsorted(known, pairs)
    found[found == len(known)] = 0
    found[known[found] != pairs] = -1
    return found
