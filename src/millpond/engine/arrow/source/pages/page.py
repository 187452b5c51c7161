"""Pages of a column, unpacked: their levels, and their values or the numbers that those have."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from millpond.engine.arrow.source.pages.unpack import DamagedPage, unpack

if TYPE_CHECKING:
    from ctypes import CDLL

    from numpy.typing import NDArray

DICTIONARY, DATA_V2 = 2, 3
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8
BY_NUMBER = (PLAIN_DICTIONARY, RLE_DICTIONARY)


def sound(found: int) -> int:
    """What a function of the library gave, unless it found something damaged."""
    if found < 0:
        raise DamagedPage
    return found


class Header(NamedTuple):
    """What is said of a page of a chunk, as the library's `headers` gives it."""

    kind: int
    rows: int
    encoding: int
    level_encoding: int
    level_bytes: int
    """How long the levels of a page of the second version are; -1 where they say it themselves."""
    is_packed: int
    size: int
    start: int
    end: int
    crc: int = -1
    """The checksum of its bytes; -1 where it has none."""

    def unpacked(self, chunk: pa.Buffer, codec: str, *, verify: bool = False) -> pa.Buffer:
        """Return the page's bytes; of the second version, those after the levels."""
        if verify and self.crc >= 0:
            stored = chunk.slice(self.start, self.end - self.start)
            if crc32(stored) != self.crc:
                raise DamagedPage
        skipped = max(self.level_bytes, 0)
        body = chunk.slice(self.start + skipped, self.end - self.start - skipped)
        return unpack(body, codec if self.is_packed else "UNCOMPRESSED", self.size - skipped)


class DataPages:
    """Rows of pages, all or those at some places, of which the first ones may have been read.

    The pages are several if their values are told by numbers, which take little; otherwise one.
    """

    def __init__(
        self,
        library: CDLL,
        headers: list[Header],
        chunk: pa.Buffer,
        codec: str,
        top: int,
        places: NDArray[np.int64] | None = None,
        *,
        verify: bool = False,
    ) -> None:
        self.is_by_number = headers[0].encoding in BY_NUMBER
        """Whether the numbers are those of a dictionary, not places in the body."""
        bodies = [header.unpacked(chunk, codec, verify=verify) for header in headers]
        told = array("q")
        for header, body in zip(headers, bodies, strict=True):
            is_apart = header.kind == DATA_V2
            levels_at = (chunk.address + header.start, header.level_bytes) if is_apart else (0, 0)
            told.extend((header.rows, *levels_at, body.address, body.size))
        begins = array("q", [0])
        pages = told.buffer_info()[0], len(headers), top
        self.body = bodies[-1]
        if places is None:
            self.rows = sum(header.rows for header in headers)
            levels = pa.allocate_buffer(self.rows if top else 0)
            self.numbers = pa.allocate_buffer(4 * self.rows) if self.is_by_number else None
            to = levels.address, 0 if self.numbers is None else self.numbers.address
            found = library.millpond_open(*pages, *to, begins.buffer_info()[0])
        else:
            self.rows = len(places)
            levels, self.numbers = pa.allocate_buffer(self.rows), pa.allocate_buffer(4 * self.rows)
            every = pa.allocate_buffer(max(header.rows for header in headers) if top else 0)
            which = int(self.is_by_number), places.ctypes.data, self.rows
            to = levels.address, self.numbers.address
            found = library.millpond_pick(
                *pages, *which, every.address, *to, begins.buffer_info()[0]
            )
        self.there = sound(found)
        """How many rows have a value."""
        self.levels = levels if self.there < self.rows else None
        """A byte for each row; none where all rows have a value."""
        self.at = begins[0]
        """Where in the body the next value begins."""
        self.row = self.value = 0
        """How many rows and values were read."""

    @property
    def levels_from(self) -> int:
        """The address of the next row's level; 0 where there are none."""
        return 0 if self.levels is None else int(self.levels.address) + self.row

    @property
    def numbers_from(self) -> int:
        """The address of the next value's number; 0 where there are none."""
        return 0 if self.numbers is None else int(self.numbers.address) + 4 * self.value

    def next_levels(self, rows: int) -> NDArray[np.uint8] | None:
        """The levels of the next rows; None where there are none."""
        if self.levels is None:
            return None
        return np.frombuffer(self.levels, np.uint8, rows, self.row)
