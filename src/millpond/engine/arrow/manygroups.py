"""Groups that have few rows each: sorting them costs less than to find each in a hash table.

So it is where rows are grouped by their time, in joins and pivots of series: nearly every row is a
group, and rows come in long runs that are in order already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.types as at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from millpond.engine.arrow.measures import How, Step

FEWEST_ROWS: Final = 10_000
SAMPLE: Final = 1_000
MOST_ALIKE: Final = 50
"""If more rows than this of a sample are like another one, there are not many groups."""


def combine_sorted(
    columns: Sequence[pa.ChunkedArray], key_count: int, steps: Sequence[Step]
) -> list[pa.Array] | None:
    """One row for each different key, in order; None if hashing is better, or the only way."""
    key = columns[0]
    if key_count != 1 or len(key) < FEWEST_ROWS or key.null_count or not _is_whole(key.type):
        return None
    if not all(_is_known(how, columns[i].type) for i, how in steps):
        return None
    numbers = _numbers(key)
    if not _has_many(numbers):
        return None
    groups = _Groups(numbers)
    return [
        pa.array(groups.keys).cast(key.type),
        *(_reduced(groups, columns, i, how) for i, how in steps),
    ]


def _is_known(how: How, type_: pa.DataType) -> bool:
    return how in ("first", "last") or (how in ("min", "max") and _is_extreme(type_))


def _is_extreme(type_: pa.DataType) -> bool:
    """Whether the smallest and largest are found among whole numbers."""
    return _is_whole(type_) or bool(type_ == pa.int8())


def _reduced(groups: _Groups, columns: Sequence[pa.ChunkedArray], i: int, how: How) -> pa.Array:
    if how == "first" or how == "last":
        return groups.edge(columns[i], columns[i + 1], how)
    return groups.reduced(columns[i], how)


def _is_whole(type_: pa.DataType) -> bool:
    return bool(type_ == pa.int64() or at.is_timestamp(type_))


def _numbers(column: pa.ChunkedArray, fill: int = 0) -> NDArray[np.int64]:
    whole = column.cast(pa.int64())
    found: NDArray[np.int64] = (whole.fill_null(fill) if whole.null_count else whole).to_numpy()
    return found


def _has_many(numbers: NDArray[np.int64]) -> bool:
    """Whether there are many groups, by rows from everywhere."""
    places = np.linspace(0, len(numbers) - 1, SAMPLE).astype(np.int64)
    return SAMPLE - len(np.unique(numbers[places])) <= MOST_ALIKE


class _Groups:
    """Rows by their keys."""

    def __init__(self, numbers: NDArray[np.int64]) -> None:
        self._order = np.argsort(numbers, kind="stable")  # which finds runs that are in order
        ranked = numbers[self._order]
        is_first = np.concatenate(([True], ranked[1:] != ranked[:-1]))
        self._starts = np.flatnonzero(is_first)
        self.keys = ranked[self._starts]
        self._group_of = np.empty(len(numbers), np.int64)
        """The number of each row's group."""
        self._group_of[self._order] = np.cumsum(is_first) - 1

    def edge(
        self, column: pa.ChunkedArray, counts: pa.ChunkedArray, how: Literal["first", "last"]
    ) -> pa.Array:
        """The value of the first or last row that counts in each group; null where none does."""
        rows = np.flatnonzero(counts.is_valid().to_numpy())
        if how == "first":
            rows = rows[::-1]
        found = np.full(len(self.keys), -1, np.int64)
        found[self._group_of[rows]] = rows  # of several in a group, the last one stays
        positions = pa.array(found, mask=found < 0)
        taken = column.take(positions)
        return taken.chunk(0) if taken.num_chunks == 1 else taken.combine_chunks()

    def reduced(self, column: pa.ChunkedArray, how: str) -> pa.Array:
        """The smallest or largest value of each group; null where a group has none."""
        is_min = how == "min"
        limits = np.iinfo(np.int64)
        values = _numbers(column, limits.max if is_min else limits.min)
        rows = np.flatnonzero(column.is_valid().to_numpy()) if column.null_count else None
        places = self._group_of if rows is None else self._group_of[rows]
        has_any = np.zeros(len(self.keys), np.bool_)
        has_any[places] = True
        if int(np.count_nonzero(has_any)) == len(places):  # one value each, at most
            found = np.zeros(len(self.keys), np.int64)
            found[places] = values if rows is None else values[rows]
        else:
            reduce: Any = np.minimum if is_min else np.maximum
            found = reduce.reduceat(values[self._order], self._starts)
        return pa.array(found, mask=None if rows is None else ~has_any).cast(column.type)
