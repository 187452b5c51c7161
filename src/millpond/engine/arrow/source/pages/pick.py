"""The texts of some rows of a column chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millpond.engine.arrow.source.pages.hybrid import is_all, numbers_at
from millpond.engine.arrow.source.pages.page import (
    BY_DICTIONARY,
    DATA,
    DICTIONARY,
    PLAIN,
    RLE,
    Page,
    pages_of,
)
from millpond.engine.arrow.source.pages.texts import CODECS, texts_by_number, texts_of_page

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from millpond.engine.arrow.source.pages.leaf import TextLeaf

_DAMAGED = (IndexError, KeyError, TypeError, ValueError, OSError, pa.ArrowException)


def pick(chunk: memoryview, leaf: TextLeaf, codec: str, rows: NDArray[np.int64]) -> pa.Array | None:
    """The texts of these rows, which stand in order, of a chunk without nulls.

    None if it holds nulls, or is stored in another way than is known here, or is damaged: then
    pyarrow reads it, and says what is wrong.
    """
    if codec not in CODECS:
        return None
    try:
        return _Chunk(chunk, leaf, codec).values(rows)
    except (_Unknown, *_DAMAGED):
        return None


class _Unknown(Exception):  # noqa: N818 - the way out, where pyarrow is asked instead
    """A chunk that is not read this way."""


class _Chunk:
    """A column chunk of which some pages are wanted."""

    def __init__(self, chunk: memoryview, leaf: TextLeaf, codec: str) -> None:
        self.chunk = chunk
        self.leaf = leaf
        self.codec_name = codec
        self.codec = None if codec == "UNCOMPRESSED" else pa.Codec(codec.lower())
        pages = pages_of(chunk)
        self.dictionary = pages[0] if pages[0].kind == DICTIONARY else None
        self.pages = pages if self.dictionary is None else pages[1:]
        self.starts = np.cumsum([0, *(page.values for page in self.pages)])

    def values(self, rows: NDArray[np.int64]) -> pa.Array:
        """Of these rows: looked up in the dictionary all at once, otherwise page by page."""
        limits = np.searchsorted(rows, self.starts)
        if limits[-1] < len(rows):
            raise ValueError("rows behind the last page")
        wanted = [
            (page, rows[first:end] - start)
            for page, start, first, end in zip(
                self.pages, self.starts, limits[:-1], limits[1:], strict=False
            )
            if first < end
        ]
        self._check([page for page, _ in wanted])
        parts, numbers = [], []
        for page, places in wanted:
            body = self._behind_levels(page)
            if page.encoding in BY_DICTIONARY:
                numbers.append(self._numbers(page, body, places))
                continue
            if numbers:  # a dictionary that grew too large ends in the middle of the chunk
                parts.append(self._looked_up(np.concatenate(numbers)))
                numbers = []
            parts.append(self._plain(page, body, places))
        if numbers:
            parts.append(self._looked_up(np.concatenate(numbers)))
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    def _check(self, pages: list[Page]) -> None:
        """Refuse before anything is unpacked."""
        for page in pages:
            by_dictionary = self.dictionary is not None and page.encoding in BY_DICTIONARY
            if page.level_encoding != RLE or not (by_dictionary or page.encoding == PLAIN):
                raise _Unknown

    def _behind_levels(self, page: Page) -> memoryview:
        """The values of a page, all of which are there."""
        body = page.unpacked(self.codec)
        levels = self.leaf.levels
        if not levels:
            return body
        if page.kind == DATA:
            end = 4 + int.from_bytes(body[:4], "little")
            said, body = body[4:end], body[end:]
        else:
            said = page.body[: page.level_bytes]
        if not is_all(said, levels.bit_length(), page.values, levels):
            raise _Unknown
        return body

    def _numbers(
        self, page: Page, body: memoryview, places: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        numbers = numbers_at(body[1:], body[0], page.values, places)
        if numbers is None:
            raise _Unknown
        return numbers

    def _looked_up(self, numbers: NDArray[np.int64]) -> pa.Array:
        page = self.dictionary
        assert page is not None
        if int(numbers.max()) >= page.values:
            raise ValueError("a number behind the end of the dictionary")
        stored = self.chunk[page.start : page.end]
        return texts_by_number(stored, self.codec_name, numbers, self.leaf.type)

    def _plain(self, page: Page, body: memoryview, places: NDArray[np.int64]) -> pa.Array:
        return texts_of_page(body, page.values, self.leaf.type).take(pa.array(places))
