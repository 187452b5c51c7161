"""Definition levels of rows that come out of several pages, and the nulls that they tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Levels:
    """A level for each row; `top` is that of a row with a value."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.rows = 0
        self._parts: list[NDArray[np.uint8] | int] = []
        """Of each page; only how many rows it is, if all have a value."""

    def add(self, rows: int, levels: NDArray[np.uint8] | None) -> None:
        """So many rows of a page with their levels; None if all have a value."""
        self.rows += rows
        self._parts.append(rows if levels is None else levels)

    def joined(self) -> NDArray[np.uint8] | None:
        """Of all rows; None if all have a value."""
        if all(isinstance(part, int) for part in self._parts):
            return None
        top = np.uint8(self.top)
        parts = [np.full(part, top) if isinstance(part, int) else part for part in self._parts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def validity(levels: NDArray[np.uint8] | None, level: int) -> tuple[pa.Buffer | None, int]:
    """Which rows have at least this level, as Arrow notes it, and how many have not.

    >>> bits, nulls = validity(np.array([2, 0, 1], np.uint8), 1)
    >>> bits.to_pybytes(), nulls
    (b'\\x05', 1)
    """
    if levels is None or not level:
        return None, 0
    there = levels >= level
    nulls = len(there) - int(np.count_nonzero(there))
    return (pa.py_buffer(np.packbits(there, bitorder="little")) if nulls else None), nulls
