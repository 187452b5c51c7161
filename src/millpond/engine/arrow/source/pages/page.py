"""The pages of a column chunk: where each begins, what is in it, and how it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.engine.arrow.source.pages.compact import read_struct

if TYPE_CHECKING:
    from typing import Any

    import pyarrow as pa

DATA, DICTIONARY, DATA_V2 = 0, 2, 3
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8
BY_DICTIONARY = (PLAIN_DICTIONARY, RLE_DICTIONARY)


@dataclass(frozen=True, slots=True)
class Page:
    """One page: what its header says, where it begins, and its bytes as they are stored."""

    kind: int
    values: int
    encoding: int
    level_encoding: int
    level_bytes: int | None
    """How long the levels of a page of the second version are; they are never packed."""
    is_packed: bool
    size: int
    start: int
    end: int
    body: memoryview

    def unpacked(self, codec: pa.Codec | None) -> memoryview:
        """The page's bytes; of the second version, those behind the levels."""
        skipped = self.level_bytes or 0
        body = self.body[skipped:]
        if codec is None or not self.is_packed:
            return body
        # A buffer's own view shows bytes above 127 as negative numbers.
        return memoryview(codec.decompress(body, self.size - skipped)).cast("B")


def pages_of(chunk: memoryview) -> list[Page]:
    """All pages of a column chunk, in order; what is no page is an error of one kind or another."""
    found, at = [], 0
    while at < len(chunk):
        header, body = read_struct(chunk, at)
        end = body + header[3]
        if header[3] < 0 or end > len(chunk):
            raise ValueError("a page ends behind its chunk")
        found.append(_page(header, at, end, chunk[body:end]))
        at = end
    return found


def _page(header: dict[int, Any], start: int, end: int, body: memoryview) -> Page:
    kind = header[1]
    if kind == DATA:
        facts = header[5]
        more = (facts[1], facts[2], facts[3], None, True)
    elif kind == DATA_V2:
        facts = header[8]
        levels = facts[5] + facts[6]
        more = (facts[1], facts[4], RLE, levels, facts.get(7, True))
    elif kind == DICTIONARY:
        more = (header[7][1], header[7][2], RLE, None, True)
    else:
        raise ValueError(f"a page of kind {kind}")
    return Page(kind, *more, header[2], start, end, body)
