"""Compressed bytes: which compression, by URL or by the end of a name, and how it is undone."""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, Any, Final

from millpond.engine.arrow.source.unpacked import content_of

if TYPE_CHECKING:
    from millpond.provider.url import Compression

ENDINGS: Final[dict[str, Compression]] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2"}
_CODECS: Final[dict[Compression, str]] = {"gzip": "gzip", "zstd": "zstd", "bzip2": "bz2"}


def compression_of(name: str) -> Compression | None:
    """What the end of a name says.

    >>> compression_of("/raw/a.csv.gz"), compression_of("/raw/a.csv")
    ('gzip', None)
    """
    lower = name.lower()
    return next((kind for end, kind in ENDINGS.items() if lower.endswith(end)), None)


def plain_name(name: str) -> str:
    """A name without the end that names a compression.

    >>> plain_name("/raw/a.TSV.gz")
    '/raw/a.tsv'
    """
    lower = name.lower()
    return next((lower.removesuffix(end) for end in ENDINGS if lower.endswith(end)), lower)


def unpacked(
    stream: IO[bytes], compression: Compression | None, name: str, size: int
) -> io.BufferedReader:
    """The content of a stream, which is closed together with what this gives."""
    if compression is None:
        return stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(_Raw(stream))
    import pyarrow as pa

    packed = pa.PythonFile(stream, mode="r")
    return content_of(pa.CompressedInputStream(packed, _CODECS[compression]), name, size)


class _Raw(io.RawIOBase):
    """What can only `read`, as Python's own streams are."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found: bytes = self._stream.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
