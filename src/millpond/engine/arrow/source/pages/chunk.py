"""The values of a column chunk, in order or of some rows alone."""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from millpond.engine.arrow.native.library import PAGE_FACTS
from millpond.engine.arrow.source.longtext import MOST_BYTES
from millpond.engine.arrow.source.pages.gather import (
    Gatherer,
    NumberGatherer,
    TextGatherer,
    ValueGatherer,
)
from millpond.engine.arrow.source.pages.page import (
    BY_NUMBER,
    DICTIONARY,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE,
    DataPages,
    Header,
    sound,
)
from millpond.engine.arrow.source.pages.unpack import CODECS, DamagedPage
from millpond.engine.arrow.source.pages.words import Words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from ctypes import CDLL

    from numpy.typing import NDArray

    from millpond.engine.arrow.source.pages.leaf import StoredLeaf

_USUAL_PAGES: Final = 64


class UnknownPage(Exception):  # noqa: N818 - the way out, where pyarrow is asked instead
    """A chunk that is stored in a way which is not known here."""


class StoredChunk:
    """One leaf of one row group, as it is stored."""

    def __init__(
        self,
        library: CDLL,
        stored: bytes,
        leaf: StoredLeaf,
        codec: str,
        rows: int,
        *,
        verify: bool = True,
    ) -> None:
        """Look at its pages; with `verify`, those that are unpacked have to fit their checksums."""
        self.leaf = leaf
        self._library = library
        self._stored = pa.py_buffer(stored)
        self._codec = codec
        self._verify = verify
        self._pages = self._headers()
        has_words = bool(self._pages) and self._pages[0].kind == DICTIONARY
        self._dictionary = self._pages.pop(0) if has_words else None
        self._check(rows)
        self._opened = 0
        self._page: DataPages | None = None

    def _headers(self) -> list[Header]:
        room, count = 0, _USUAL_PAGES
        while room < count:
            room = count
            facts = np.empty((room, PAGE_FACTS), np.int64)
            where = self._stored.address, self._stored.size
            count = sound(self._library.millpond_headers(*where, facts.ctypes.data, room))
        return [Header(*page) for page in facts[:count].tolist()]

    def _check(self, rows: int) -> None:
        """Refuse what would be found out too late, with some rows given already."""
        words = self._dictionary
        if self._codec not in CODECS:
            raise UnknownPage
        if words is not None and words.encoding not in (PLAIN, PLAIN_DICTIONARY):
            raise UnknownPage
        for page in self._pages:
            is_known = page.encoding == PLAIN or (page.encoding in BY_NUMBER and words is not None)
            if page.kind == DICTIONARY or not is_known or page.level_encoding != RLE:
                raise UnknownPage
        if sum(page.rows for page in self._pages) != rows:
            raise DamagedPage

    @property
    def is_numbered(self) -> bool:
        """Whether all values are told by their numbers in a dictionary."""
        return all(map(self._is_by_number, range(len(self._pages))))

    def next(self, rows: int, *, numbered: bool = False) -> pa.Array:
        """The column's next rows; texts as a dictionary, if that is asked for and can be."""
        gatherer = self._gatherer(rows, self._plain_bytes(rows), numbered=numbered)
        for page, some in self._rows_of_pages(rows):
            gatherer.add(page, some)
        return self.leaf.column(*gatherer.array())

    def at(self, places: NDArray[np.int64]) -> pa.Array:
        """The column's rows at these places, which stand in order; other pages stay packed."""
        starts = np.cumsum([0, *(page.rows for page in self._pages)])
        limits = np.searchsorted(places, starts)
        if limits[-1] < len(places):
            raise DamagedPage
        wanted = np.flatnonzero(np.diff(limits)).tolist()
        gatherer = self._gatherer(len(places), 0)
        for numbers in _together(wanted, self._is_by_number):
            # Places among the rows of these pages, with others between them left out.
            first, end = limits[numbers[0]], limits[numbers[-1] + 1]
            rows = [self._pages[number].rows for number in numbers]
            moved = starts[numbers] - np.cumsum([0, *rows[:-1]])
            counts = limits[np.array(numbers) + 1] - limits[numbers]
            inside = places[first:end] - np.repeat(moved, counts)
            gatherer.add(self._opened_pages(numbers, inside), len(inside))
        return self.leaf.column(*gatherer.array())

    def _gatherer(self, rows: int, size: int, *, numbered: bool = False) -> Gatherer:
        of, width = (self._library, self.leaf.type, self.leaf.top), self.leaf.width
        if width is not None:
            return ValueGatherer(*of, rows, width, self._words)
        words = self._texts
        too_long = words is not None and rows * words.longest > MOST_BYTES
        if self.is_numbered and words is not None and (numbered or too_long):
            return NumberGatherer(*of, rows, self._dictionary_array)
        return TextGatherer(*of, rows, size, words)

    def _rows_of_pages(self, rows: int) -> Iterator[tuple[DataPages, int]]:
        """The pages with the next rows, and how many of each; who takes them notes that."""
        while rows:
            pages = self._page
            if pages is None or pages.row == pages.rows:
                pages = self._page = self._next_pages(rows)
            some = min(rows, pages.rows - pages.row)
            if some:
                yield pages, some
                rows -= some

    def _next_pages(self, rows: int) -> DataPages:
        """Pages that were not opened yet, with so many rows if they can be had together."""
        first = end = self._opened
        while rows > 0 and end < len(self._pages):
            if end > first and not (self._is_by_number(first) and self._is_by_number(end)):
                break
            rows -= self._pages[end].rows
            end += 1
        self._opened = end
        return self._opened_pages(range(first, end))

    def _is_by_number(self, page: int) -> bool:
        return self._pages[page].encoding in BY_NUMBER

    def _opened_pages(
        self, numbers: Sequence[int], places: NDArray[np.int64] | None = None
    ) -> DataPages:
        headers = [self._pages[number] for number in numbers]
        how = self._stored, self._codec, self.leaf.top, places
        return DataPages(self._library, headers, *how, verify=self._verify)

    def fits(self, rows: int) -> bool:
        """Whether so many rows, whichever they are, surely fit into one array."""
        if self.leaf.width is not None or self.is_numbered:
            return True  # numbers do, in any case
        longest = 0 if self._texts is None else self._texts.longest
        return rows * longest + sum(page.size for page in self._plain_pages) <= MOST_BYTES

    def _plain_bytes(self, rows: int) -> int:
        """How much the pages take that hold so many texts themselves; numbers tell it better."""
        plain = self._plain_pages
        if not plain:
            return 0
        row_bytes = sum(page.size for page in plain) / max(sum(page.rows for page in plain), 1)
        return int(rows * row_bytes) + max(page.size for page in plain)

    @property
    def _plain_pages(self) -> list[Header]:
        return [page for page in self._pages if page.encoding == PLAIN]

    @cached_property
    def _words(self) -> pa.Buffer | None:
        """The bytes of the dictionary."""
        header = self._dictionary
        if header is None:
            return None
        return header.unpacked(self._stored, self._codec, verify=self._verify)

    @cached_property
    def _texts(self) -> Words | None:
        """The dictionary's texts."""
        header, body = self._dictionary, self._words
        return None if header is None else Words(self._library, body, header.rows)

    @cached_property
    def _dictionary_array(self) -> pa.Array:
        """The same as an Arrow array."""
        assert self._dictionary is not None
        header = self._dictionary._replace(encoding=PLAIN)
        page = DataPages(self._library, [header], self._stored, self._codec, 0, verify=self._verify)
        texts = TextGatherer(self._library, self.leaf.type, 0, header.rows, page.body.size, None)
        texts.add(page, header.rows)
        return texts.array()[0]


def _together(pages: list[int], is_by_number: Callable[[int], bool]) -> Iterator[list[int]]:
    """Pages that can be opened at once: those by number that nothing stands between, or one."""
    for is_numbered, group in groupby(pages, is_by_number):
        some = list(group)
        yield from [some] if is_numbered else [[page] for page in some]
