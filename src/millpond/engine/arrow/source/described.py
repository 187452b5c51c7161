"""Parquet files by what Parquet itself says of their columns, as Spark reads them.

Many writers leave an Arrow schema in the footer, too. It tells how they held the columns, and
pyarrow would hold them so again: as views, of which no rows can be chosen, as dictionaries, or with
32-bit offsets, into which texts are decoded a sixth more slowly. So its name is hidden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from typing import Any

_TAIL_BYTES = 1 << 16
_MAGIC = b"PAR1"
_KEY = b"\x18\x0cARROW:schema\x18"
"""The name between the marks of two fields of Thrift, both texts."""
_PLACE = 2


def open_parquet(
    file: pa.NativeFile,
    *,
    remote: bool = False,
    metadata: Any = None,
    dictionaries: list[str] | None = None,
) -> pq.ParquetFile:
    """A reader of a file; texts and bytes have 64-bit offsets, or some come as dictionaries."""
    # Ranges of remote objects are fetched ahead, together; local ones as they are needed.
    return pq.ParquetFile(
        file,
        metadata=_metadata(file, remote=remote) if metadata is None else metadata,
        pre_buffer=remote,
        coerce_int96_timestamp_unit="us",
        read_dictionary=dictionaries,
        binary_type=pa.large_binary() if dictionaries is None else None,
    )


def _metadata(file: pa.NativeFile, *, remote: bool) -> pq.FileMetaData | None:
    """What the footer says; None if pyarrow may as well read it, or has to say what is wrong."""
    size = file.size()
    tail = _end(file, min(size, _TAIL_BYTES), size)
    needed = int.from_bytes(tail[-8:-4], "little") + 8
    if not tail.endswith(_MAGIC) or needed > size:
        return None
    if needed > len(tail):
        tail = _end(file, needed, size)
    at = tail.rfind(_KEY, len(tail) - needed)
    if at < 0 and not remote:
        return None
    shown = bytearray(tail)
    if at >= 0:
        shown[at + _PLACE] = ord("-")
    return pq.read_metadata(pa.BufferReader(shown))


def _end(file: pa.NativeFile, count: int, size: int) -> bytes:
    return bytes(file.read_at(count, size - count))
