"""Blocks of text as lines: plain objects stay where they are, other lines become texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

AROUND: Final = " \t\r\n\ufeff"
_OPEN, _CLOSE = b"{}"
_LINE_END: Final = 0x0A
_WINDOW: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a block that are not blank, and where they start in it."""

    starts: NDArray[np.int64]
    plain: bytes | None
    """The block, if it is UTF-8 and each of its lines is braces and what is between them."""
    others: pa.Array | None = None
    """The lines of a block that is not, without what stands around them."""

    def __len__(self) -> int:
        return len(self.starts)

    def bytes_of(self, start: int, count: int) -> memoryview:
        """Some lines of a plain block, with their line ends."""
        assert self.plain is not None
        end = start + count
        last = self.starts[end] if end < len(self.starts) else len(self.plain)
        return memoryview(self.plain)[self.starts[start] : last]

    def texts(self) -> pa.Array:
        """The lines as a column; those of a plain block are not copied, and keep their ends."""
        if self.others is not None:
            return self.others
        assert self.plain is not None
        return _column(self.plain, self.starts, pa.string())


def split_lines(block: bytes) -> Lines:
    """The lines of a block that are not blank."""
    if not block.endswith(b"\n"):
        block += b"\n"
    starts, are_objects = line_starts(np.frombuffer(block, np.uint8))
    if are_objects and is_text(block):
        return Lines(starts, block)
    texts = pc.utf8_trim(_as_text(_column(block, starts, pa.binary())), AROUND)
    full = pc.greater(pc.binary_length(texts), 0)
    return Lines(starts[full.to_numpy(zero_copy_only=False)], None, texts.filter(full))


def line_starts(data: NDArray[np.uint8]) -> tuple[NDArray[np.int64], bool]:
    """Where lines start in bytes that end with a line end, and whether all are within braces."""
    # Window by window: what a comparison gives stays in the processor's cache.
    windows = range(0, len(data), _WINDOW)
    found = [np.flatnonzero(data[at : at + _WINDOW] == _LINE_END) + at for at in windows]
    ends = found[0] if len(found) == 1 else np.concatenate(found)
    starts = np.empty_like(ends)
    starts[0] = 0
    np.add(ends[:-1], 1, out=starts[1:])
    plain = (data[starts] == _OPEN).all() and (data[ends - 1] == _CLOSE).all()
    return starts, bool(plain)


def is_text(block: bytes) -> bool:
    """Whether it is UTF-8."""
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _column(block: bytes, starts: NDArray[np.int64], type_: pa.DataType) -> pa.Array:
    offsets = np.append(starts, len(block)).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    return pa.Array.from_buffers(type_, len(starts), buffers)


def _as_text(raw: pa.Array) -> pa.Array:
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        # Bytes that are not UTF-8 become U+FFFD, as everywhere else.
        texts = [value.decode(errors="replace") for value in raw.to_pylist()]
        return pa.array(texts, pa.string())
