"""Some rows of arrays: few by their positions, nearly all by a mask of those that are left out."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEFT = 0.8
"""So much has to be left for a mask to be the faster way: it copies stretches, not values."""


class Choice(Protocol):
    """Which rows are wanted, and how many those are."""

    @property
    def count(self) -> int:
        """How many."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """Their positions."""

    def of(self, array: pa.Array) -> pa.Array:
        """These rows of an array; an `IndexError` if it has fewer."""


class Picked:
    """Rows by their positions."""

    def __init__(self, rows: NDArray[np.int64]) -> None:
        self.count = len(rows)
        self.rows = rows
        if rows.min(initial=0) < 0:
            raise IndexError(rows.min())
        self._end = int(rows.max(initial=-1)) + 1
        self._places = pa.array(rows)

    def of(self, array: pa.Array) -> pa.Array:
        """These rows of an array."""
        if len(array) < self._end:
            raise IndexError(self._end)
        # pyarrow would look at each position again, which takes longer than the rest.
        return pc.take(array, self._places, boundscheck=False)


class Left:
    """The first so many rows without some."""

    def __init__(self, rows: int, gone: NDArray[np.int64]) -> None:
        self.count = rows - len(gone)
        self._all = rows
        there = np.ones(rows, bool)
        there[gone] = False
        self._there = there

    def of(self, array: pa.Array) -> pa.Array:
        """These rows of an array."""
        if self.count < _LEFT * self._all or at.is_nested(array.type):
            return self._picked.of(array)
        if len(array) < self._all:
            raise IndexError(self._all)
        return array.slice(0, self._all).filter(self._mask)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Their positions."""
        return np.flatnonzero(self._there)

    @cached_property
    def _picked(self) -> Picked:
        return Picked(self.rows)

    @cached_property
    def _mask(self) -> pa.BooleanArray:
        bits = pa.py_buffer(np.packbits(self._there, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), self._all, [None, bits])


def choice_of(
    rows: NDArray[np.int64] | None, gone: NDArray[np.int64] | None, every: int
) -> Choice | None:
    """These rows, or all of so many but those that are gone; None: all."""
    if rows is not None:
        return Picked(rows)
    return None if gone is None else Left(every, gone)
