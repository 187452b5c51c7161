"""Parquet files by what Parquet itself says of their columns, as Spark reads them.

Many writers leave an Arrow schema in the footer, too. It tells how they held the columns, and
pyarrow would hold them so again: as views, of which no rows can be chosen, as dictionaries, or with
32-bit offsets, into which texts are decoded a sixth more slowly. So its name is hidden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.base.seals import tail_of
from millpond.engine.arrow.source.soundfooter import footer_fault

if TYPE_CHECKING:
    from typing import Any

    from millpond.base.seals import Seal

_KEY = b"\x18\x0cARROW:schema\x18"
"""The name between the marks of two fields of Thrift, both texts."""
_PLACE = 2


class Opened(NamedTuple):
    """A reader of a file, and the seal of the file, if it has one."""

    parquet: pq.ParquetFile
    seal: Seal | None


def open_parquet(
    file: pa.NativeFile, *, remote: bool = False, required: str | bool | None = None
) -> Opened:
    """Open a file whose footer was not read yet; `required` is the mark that it has to have.

    What pyarrow can't read of it, pyarrow says.
    """
    tail = tail_of(file.read_at, file.size(), required=required)
    metadata = None if tail is None else _described(tail.footer, remote=remote)
    seal = None if tail is None else tail.seal
    opened = reader_of(file, metadata=metadata, remote=remote, seal=seal)
    if tail is not None and seal is None:
        fault = footer_fault(tail.footer, opened.metadata.num_columns)
        if fault is not None:
            raise pa.ArrowInvalid(f"its footer is damaged: {fault}")
    return Opened(opened, seal)


def reader_of(
    file: pa.NativeFile,
    *,
    metadata: Any,
    remote: bool = False,
    seal: Seal | None = None,
    dictionaries: list[str] | None = None,
) -> pq.ParquetFile:
    """Return a reader of a file; texts and bytes have 64-bit offsets, or are dictionaries."""
    # Ranges of remote objects are fetched ahead, together; local ones as they are needed.
    # A seal tells more than the checksums of pages, for less time; but it needs all bytes here.
    return pq.ParquetFile(
        file,
        metadata=metadata,
        pre_buffer=remote,
        coerce_int96_timestamp_unit="us",
        read_dictionary=dictionaries,
        binary_type=pa.large_binary() if dictionaries is None else None,
        page_checksum_verification=remote or seal is None,
    )


def _described(footer: bytes, *, remote: bool) -> pq.FileMetaData | None:
    """Return what a footer says; None if pyarrow may as well read it."""
    at = footer.rfind(_KEY)
    if at < 0 and not remote:
        return None
    shown = bytearray(footer)
    if at >= 0:
        shown[at + _PLACE] = ord("-")
    return pq.read_metadata(pa.BufferReader(shown))
