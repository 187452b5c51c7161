"""Join keys as whole numbers: the right side's different keys are numbered, the left's looked up.

-1 stands for a key without a partner. No step looks at a single row in Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray


class JoinKeys:
    """The numbered keys of the right side, and its rows by number."""

    def __init__(self, right: list[pa.Array], *, nulls_equal: bool) -> None:
        self._values: list[pa.Array] = []
        self._pairs: list[NDArray[np.int64]] = []
        numbers = self._begin(right, nulls_equal=nulls_equal)
        rows = np.argsort(numbers, kind="stable")
        rows = rows[np.searchsorted(numbers[rows], 0) :]  # those without a number have no partner
        self.rows = rows
        count = int(numbers.max()) + 1 if len(numbers) else 0
        self.starts = np.searchsorted(numbers[rows], np.arange(count + 1))

    def _begin(self, right: list[pa.Array], *, nulls_equal: bool) -> NDArray[np.int64]:
        found: NDArray[np.int64] | None = None
        for column in right:
            different = column.unique()
            if not nulls_equal:
                different = different.drop_null()
            self._values.append(different)
            numbers = self._number(column, different)
            if found is None:
                found = numbers
            else:
                pairs = _pair(found, numbers, len(different))
                self._pairs.append(np.unique(pairs[pairs >= 0]))
                found = _look_up(pairs, self._pairs[-1])
        assert found is not None
        return found

    def look_up(self, left: list[pa.Array]) -> NDArray[np.int64]:
        """The numbers of the left side's keys."""
        found = self._number(left[0], self._values[0])
        for column, values, pairs in zip(left[1:], self._values[1:], self._pairs, strict=True):
            numbers = self._number(column, values)
            found = _look_up(_pair(found, numbers, len(values)), pairs)
        return found

    @staticmethod
    def _number(column: pa.Array, values: pa.Array) -> NDArray[np.int64]:
        found = pc.index_in(column, value_set=values).fill_null(-1)
        numbers: NDArray[np.int64] = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return numbers

    def partners(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many right rows each key has."""
        if len(self.starts) == 1:
            return np.zeros(len(numbers), np.int64)
        known = np.maximum(numbers, 0)
        counts: NDArray[np.int64] = self.starts[known + 1] - self.starts[known]
        counts[numbers < 0] = 0
        return counts


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
