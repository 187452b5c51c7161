"""The texts of a chunk's dictionary, by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from millpond.engine.arrow.source.pages.page import sound
from millpond.engine.arrow.source.pages.unpack import DamagedPage

if TYPE_CHECKING:
    from ctypes import CDLL


_LENGTH_BYTES = 4


class Words:
    """A dictionary page of so many texts, which stay where they are."""

    def __init__(self, library: CDLL, body: pa.Buffer, count: int) -> None:
        if _LENGTH_BYTES * count > body.size:
            raise DamagedPage  # before so much room is made for nothing
        self._body = body
        self._starts = pa.allocate_buffer(4 * (count + 1))
        starts = self._starts.address
        self.longest = sound(library.millpond_entries(body.address, body.size, count, starts))
        """How long the longest is."""
        self.places = body.address, starts, count
        """Where the page is, where the beginnings are of its texts, and how many those are."""
