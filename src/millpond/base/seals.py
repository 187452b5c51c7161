"""Seals of Parquet files: hashes of all that a file holds, in the file itself.

A file that Millpond writes has a block of hashes between its pages and its footer, where other
readers do not look: one hash for each column chunk, one for the page index, and one, the *mark*,
for the block and the footer. A reader checks the mark when it reads the footer, and the hash of
each chunk that it reads. So what is read was written so, and what is not read costs nothing.

The mark of a table's data file is part of its name, which the log of the table keeps: a file
without its seal, or with the seal of another file, is not the file that was written.
"""

from __future__ import annotations

import io
import os
import re
from dataclasses import dataclass
from functools import partial
from struct import Struct
from threading import local
from typing import TYPE_CHECKING, Any, Final

from blake3 import blake3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    ReadAt = Callable[[int, int], bytes]
    """Returns so many bytes (the first number) from a place on (the second one)."""

TRAILER: Final = 8
"""A Parquet file ends with the length of its footer and four letters."""
_PARQUET: Final = b"PAR1"
_MAGIC: Final = b"pondSEAL"
_HASH: Final = 8
_MARK: Final = 16
_FIXED: Final = Struct(f"<QQ{_MARK}s{_MARK}s{_MARK}s{len(_MAGIC)}s")
"""The end of the block: the number of chunks, where they end, the hashes of the index and of the
label, the mark, and the name of the block."""
_NAMED: Final = re.compile(r"\.([0-9a-f]{32})(?:\.[a-z0-9]+)?\.parquet$")
_PIECE: Final = 1 << 18
_BUFFERS: Final = local()


class BrokenSealError(Exception):
    """What a file holds is not what was written."""


@dataclass(frozen=True, slots=True)
class Seal:
    """The hashes of a file, once its mark was checked."""

    mark: str
    end: int
    """Where the chunks end, and the page index begins."""
    block: int
    """Where the page index ends, and the hashes begin."""
    index: bytes
    label: bytes
    hashes: bytes

    @property
    def chunks(self) -> int:
        """The number of column chunks."""
        return len(self.hashes) // _HASH

    def is_chunk(self, number: int, content: bytes) -> bool:
        """Whether these are the bytes of a column chunk; they are counted group by group."""
        return self.is_hash(number, blake3(content).digest(_HASH))

    def is_hash(self, number: int, found: bytes) -> bool:
        """Whether a chunk has this hash."""
        return 0 <= number < self.chunks and self.hashes[number * _HASH :][:_HASH] == found


@dataclass(frozen=True, slots=True)
class Tail:
    """The footer of a file with its trailer, and the seal, if the file has one."""

    footer: bytes
    seal: Seal | None


def mark_in(path: str) -> str | None:
    """Return the mark that a file's name requires.

    >>> mark_in("part-00000-c000.0123456789abcdef0123456789abcdef.zstd.parquet")
    '0123456789abcdef0123456789abcdef'
    >>> mark_in("part-00000-c000.zstd.parquet") is None
    True
    """
    found = _NAMED.search(path)
    return None if found is None else found[1]


def tail_of(
    read_at: ReadAt, size: int, *, required: str | bool | None = None, first: int = 1 << 16
) -> Tail | None:
    """Read the end of a Parquet file and check its seal; None if it is not Parquet.

    `required` is the mark that it has to have, or True if any mark will do. The first read is of
    so many bytes, which mostly are enough.
    """
    known = min(size, first)
    tail = bytes(read_at(known, size - known))
    length = int.from_bytes(tail[-TRAILER:-4], "little") + TRAILER
    if not tail.endswith(_PARQUET) or length > size or len(tail) < known:
        if required:
            raise BrokenSealError("its end is damaged")
        return None
    if length + _FIXED.size > len(tail):
        known = min(length + _FIXED.size, size)
        tail = bytes(read_at(known, size - known))
    footer = tail[len(tail) - length :]
    fixed = tail[:-length][-_FIXED.size :]
    seal = None
    if fixed.endswith(_MAGIC) and len(fixed) == _FIXED.size:
        count, end, index, label, mark, _ = _FIXED.unpack(fixed)
        block = size - length - _FIXED.size - count * _HASH
        if not 0 <= end <= block:
            raise BrokenSealError("its seal is damaged")
        missing = size - block - len(tail)
        hashes = (bytes(read_at(missing, block)) if missing > 0 else b"") + tail[
            max(-missing, 0) : len(tail) - length - _FIXED.size
        ]
        if _mark(hashes, (block, end, index, label), footer) != mark:
            raise BrokenSealError("its footer is damaged")
        seal = Seal(mark.hex(), end, block, index, label, hashes)
    if required and seal is None:
        raise BrokenSealError("its seal is missing or damaged")
    if isinstance(required, str) and seal is not None and seal.mark != required:
        raise BrokenSealError("it is another file, or its seal is damaged")
    return Tail(footer, seal)


def _mark(hashes: bytes, fixed: tuple[int, int, bytes, bytes], footer: bytes) -> bytes:
    hasher = blake3(hashes)
    hasher.update(_FIXED.pack(*fixed, b"", _MAGIC))
    hasher.update(footer)
    return hasher.digest(_MARK)


def check_file(file: Path, required: str | bool | None = None, *, label: str | None = None) -> bool:
    """Check all of a Parquet file of this machine; returns False if it has no seal."""
    with file.open("rb", buffering=0) as opened:
        fd, size = opened.fileno(), os.fstat(opened.fileno()).st_size
        read_at, hash_of = partial(_pread, fd), partial(hash_range, fd)
        return _check(read_at, hash_of, size, (required, label))


def check_bytes(
    content: bytes, required: str | bool | None = None, *, label: str | None = None
) -> bool:
    """Check all of a Parquet file in memory; returns False if it has no seal."""

    def read_at(length: int, start: int) -> bytes:
        return content[start : start + length]

    return _check(read_at, partial(_hash, read_at), len(content), (required, label))


def check_ranges(read_at: ReadAt, size: int, required: str | bool | None = None) -> bool:
    """Check all of a Parquet file that is read in parts; returns False if it has no seal."""
    return _check(read_at, partial(_hash, read_at), size, (required, None))


def check_ends(file: Path, required: str | bool | None = None) -> bool:
    """Check the footer and the page index of a file; returns False if it has no seal."""
    with file.open("rb", buffering=0) as opened:
        fd, size = opened.fileno(), os.fstat(opened.fileno()).st_size
        tail = tail_of(partial(_pread, fd), size, required=required)
        if tail is None or tail.seal is None:
            return False
        _check_index(tail.seal, partial(hash_range, fd))
        return True


def _check_index(seal: Seal, hash_of: Callable[[int, int, int], bytes]) -> None:
    if hash_of(seal.end, seal.block - seal.end, _MARK) != seal.index:
        raise BrokenSealError("its page index is damaged")


def _pread(fd: int, length: int, start: int) -> bytes:
    return os.pread(fd, length, start)


def _check(
    read_at: ReadAt,
    hash_of: Callable[[int, int, int], bytes],
    size: int,
    wanted: tuple[str | bool | None, str | None],
) -> bool:
    required, label = wanted
    tail = tail_of(read_at, size, required=required)
    if tail is None or tail.seal is None:
        return False
    seal = tail.seal
    if label is not None and seal.label != _label(label):
        raise BrokenSealError("it is another file")
    if read_at(len(_PARQUET), 0) != _PARQUET:
        raise BrokenSealError("its first bytes are damaged")
    for number, (start, length) in enumerate(chunk_spans(metadata_of(tail.footer))):
        if not seal.is_hash(number, hash_of(start, length, _HASH)):
            raise BrokenSealError(f"its bytes {start} to {start + length} are damaged")
    _check_index(seal, hash_of)
    return True


def whole_hash(file: Path) -> str:
    """Return the hash of all bytes of a file of this machine."""
    with file.open("rb", buffering=0) as opened:
        fd = opened.fileno()
        return hash_range(fd, 0, os.fstat(fd).st_size, 32).hex()


def metadata_of(footer: bytes) -> Any:
    """Return what a footer says."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.read_metadata(pa.BufferReader(footer))


def hash_range(fd: int, start: int, length: int, size: int = _HASH) -> bytes:
    """Return the hash of a part of an open file of this machine."""
    # One buffer for all: fresh memory takes longer to get than the bytes to read.
    buffer = getattr(_BUFFERS, "piece", None)
    if buffer is None:
        buffer = _BUFFERS.piece = bytearray(_PIECE)
    view = memoryview(buffer)
    hasher = blake3()
    while length > 0:
        count = os.preadv(fd, [view[: min(length, _PIECE)]], start)
        if not count:
            break
        hasher.update(view[:count])
        start, length = start + count, length - count
    return hasher.digest(size)


# Writing


def seal_file(file: Path, label: str = "") -> str:
    """Seal a Parquet file of this machine; returns its mark.

    The label says what the file is, where its name does not have the mark.
    """
    with file.open("r+b") as stream:
        return _seal(stream, _label(label))


def sealed_bytes(content: bytes, label: str = "") -> tuple[bytes, str]:
    """Return a Parquet file in memory with its seal, and the mark."""
    stream = io.BytesIO(content)
    mark = _seal(stream, _label(label))
    return stream.getvalue(), mark


def _label(label: str) -> bytes:
    return blake3(label.encode()).digest(_MARK)


def _seal(stream: io.BytesIO | io.BufferedRandom, label: bytes) -> str:
    def read_at(length: int, start: int) -> bytes:
        stream.seek(start)
        return stream.read(length)

    size = stream.seek(0, io.SEEK_END)
    tail = tail_of(read_at, size)
    if tail is None:
        raise BrokenSealError("it is not a Parquet file")
    stop = size - len(tail.footer)
    spans = list(chunk_spans(metadata_of(tail.footer)))
    end = max((start + length for start, length in spans), default=len(_PARQUET))
    hashes = b"".join(_hash(read_at, start, length, _HASH) for start, length in spans)
    index = _hash(read_at, end, stop - end, _MARK)
    mark = _mark(hashes, (stop, end, index, label), tail.footer)
    stream.seek(stop)
    stream.write(hashes)
    stream.write(_FIXED.pack(len(spans), end, index, label, mark, _MAGIC))
    stream.write(tail.footer)
    return mark.hex()


def _hash(read_at: ReadAt, start: int, length: int, size: int) -> bytes:
    hasher = blake3()
    while length > 0:
        piece = read_at(min(length, 1 << 20), start)
        if not piece:
            break
        hasher.update(piece)
        start, length = start + len(piece), length - len(piece)
    return hasher.digest(size)


def chunk_spans(metadata: Any) -> Iterator[tuple[int, int]]:
    """Yield where each column chunk of a file begins and how long it is, group by group."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for leaf in range(metadata.num_columns):
            yield chunk_span(row_group.column(leaf))


def chunk_span(chunk: Any) -> tuple[int, int]:
    """Return where a column chunk begins, and how long it is."""
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    return int(start), int(chunk.total_compressed_size)


# Notes


def sealed_text(text: str, label: str) -> bytes:
    """Return a text after a line with its hash; the label says what it is.

    >>> opened_text(sealed_text("a note", "of today"), "of today")
    'a note'
    """
    content = text.encode()
    return _text_hash(content, label) + b"\n" + content


def opened_text(sealed: bytes, label: str) -> str:
    """Return the text that was sealed; raises BrokenSealError if it is another one now."""
    head, _, content = sealed.partition(b"\n")
    if _text_hash(content, label) != head:
        raise BrokenSealError("it is not what was written")
    return content.decode()


def _text_hash(content: bytes, label: str) -> bytes:
    hasher = blake3(_label(label))
    hasher.update(content)
    return hasher.hexdigest(_MARK).encode()


class Checks:
    """Files of this machine that were checked by this process; they are as long as they stay so.

    A file that was changed since, by its time, size or number, is checked again.
    """

    MOST: Final = 65_536
    """The oldest half of more is forgotten."""

    def __init__(self) -> None:
        self._good: dict[str, tuple[int, int, int]] = {}

    def once(self, file: Path, check: Callable[[Path], object]) -> None:
        """Check a file unless that was done; what `check` raises, is raised."""
        found = file.stat()
        state = found.st_mtime_ns, found.st_size, found.st_ino
        if self._good.get(str(file)) == state:
            return
        check(file)
        if len(self._good) >= self.MOST:
            for name in list(self._good)[: self.MOST // 2]:
                self._good.pop(name, None)
        self._good[str(file)] = state
