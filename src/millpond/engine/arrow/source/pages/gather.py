"""Rows out of pages in Arrow's layout: texts, numbers of texts, or values of one width."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from millpond.engine.arrow.source.longtext import MOST_BYTES, TooLong
from millpond.engine.arrow.source.pages.levels import Levels, validity
from millpond.engine.arrow.source.pages.page import sound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from millpond.engine.arrow.source.pages.page import DataPages
    from millpond.engine.arrow.source.pages.words import Words

_SMALL_BYTES = 4 << 20
"""Up to so many, texts are given the room that the longest ones would take."""


class Some(NamedTuple):
    """Some rows of a page, as the library's functions are told of them; addresses may be 0."""

    numbers: int
    """Where the numbers are of the values of these rows; 0: they stand one after the other."""
    there: int
    """How many values there are, at least."""
    levels: int
    """Where a level is for each row; 0: all rows have a value."""
    top: int
    rows: int


class Gatherer(ABC):
    """Rows, of which each page adds some."""

    def __init__(self, library: ctypes.CDLL, type_: pa.DataType, top: int) -> None:
        self.library = library
        self.type = type_
        self.levels = Levels(top)

    def add(self, page: DataPages, rows: int) -> None:
        """The next rows of a page."""
        left = page.there - page.value
        some = Some(page.numbers_from, left, page.levels_from, self.levels.top, rows)
        page.value += sound(self._add(page, some))
        self.levels.add(rows, page.next_levels(rows))
        page.row += rows

    @abstractmethod
    def _add(self, page: DataPages, some: Some) -> int:
        """Put some rows of a page behind those that are there; how many have a value, or -1."""

    def array(self) -> tuple[pa.Array, NDArray[np.uint8] | None]:
        """What was gathered, and its levels."""
        levels = self.levels.joined()
        bits, nulls = validity(levels, self.levels.top)
        return self._array(bits, nulls), levels

    @abstractmethod
    def _array(self, bits: pa.Buffer | None, nulls: int) -> pa.Array:
        """The rows with these nulls."""


class TextGatherer(Gatherer):
    """So many texts; `size` is what those take that pages hold themselves, at most."""

    def __init__(
        self,
        library: ctypes.CDLL,
        type_: pa.DataType,
        top: int,
        rows: int,
        size: int,
        words: Words | None,
    ) -> None:
        super().__init__(library, type_, top)
        self._words = words
        self._offsets = pa.allocate_buffer(4 * (rows + 1))
        self._ends = np.frombuffer(self._offsets, np.int32)
        self._ends[0] = 0
        self._content = pa.allocate_buffer(min(size, MOST_BYTES), resizable=True)

    def _add(self, page: DataPages, some: Some) -> int:
        return self._add_words(some) if page.is_by_number else self._add_plain(page, some)

    def _add_plain(self, page: DataPages, some: Some) -> int:
        self._make_room(page.body.size - page.at)
        at = ctypes.c_int64(page.at)
        where = page.body.address, page.body.size, ctypes.addressof(at)
        found: int = self.library.millpond_plain(*where, *some, *self._room())
        page.at = at.value
        return found

    def _add_words(self, some: Some) -> int:
        words = self._words
        assert words is not None
        values = min(some.rows, some.there)
        size = values * words.longest
        if size > _SMALL_BYTES:
            size = sound(self.library.millpond_length(*words.places, some.numbers, values))
        self._make_room(size)
        found: int = self.library.millpond_words(*words.places, *some, *self._room())
        return found

    def _make_room(self, more: int) -> None:
        needed = int(self._ends[self.levels.rows]) + more
        if needed > self._content.size:
            if needed > MOST_BYTES:
                raise TooLong
            spare = needed // 2 if self._content.size else 0
            self._content.resize(min(needed + spare, MOST_BYTES))

    def _room(self) -> tuple[int, int, int]:
        """Where the next row's offset is, where all bytes are, and how many those may be."""
        next_row = self._offsets.address + 4 * self.levels.rows
        return next_row, self._content.address, self._content.size

    def _array(self, bits: pa.Buffer | None, nulls: int) -> pa.Array:
        rows = self.levels.rows
        self._content.resize(int(self._ends[rows]), shrink_to_fit=True)
        return pa.Array.from_buffers(self.type, rows, [bits, self._offsets, self._content], nulls)


class NumberGatherer(Gatherer):
    """So many texts by their numbers, as an Arrow dictionary; they have to be in one."""

    def __init__(
        self, library: ctypes.CDLL, type_: pa.DataType, top: int, rows: int, words: pa.Array
    ) -> None:
        super().__init__(library, type_, top)
        self._words = words
        self._numbers = pa.allocate_buffer(4 * rows)

    def _add(self, page: DataPages, some: Some) -> int:  # noqa: ARG002 - it has none of its own
        found: int = self.library.millpond_spread(
            *some, self._numbers.address + 4 * self.levels.rows
        )
        return found

    def _array(self, bits: pa.Buffer | None, nulls: int) -> pa.Array:
        buffers = [bits, self._numbers]
        numbers = pa.Array.from_buffers(pa.int32(), self.levels.rows, buffers, nulls)
        return pa.DictionaryArray.from_arrays(numbers, self._words, safe=False)


class ValueGatherer(Gatherer):
    """So many values of one width; `words` are the bytes of a dictionary."""

    def __init__(
        self,
        library: ctypes.CDLL,
        type_: pa.DataType,
        top: int,
        rows: int,
        width: int,
        words: pa.Buffer | None,
    ) -> None:
        super().__init__(library, type_, top)
        self._width = width
        self._words = words
        self._values = pa.allocate_buffer(width * rows)

    def _add(self, page: DataPages, some: Some) -> int:
        body, start = self._words, 0
        if not page.is_by_number:
            body, start = page.body, page.at + self._width * page.value
        assert body is not None
        words = body.address + start, (body.size - start) // self._width, self._width
        out = self._values.address + self._width * self.levels.rows
        found: int = self.library.millpond_fixed(*words, *some, out)
        return found

    def _array(self, bits: pa.Buffer | None, nulls: int) -> pa.Array:
        return pa.Array.from_buffers(self.type, self.levels.rows, [bits, self._values], nulls)
