"""Text files as streams of bytes; compressed ones, by the end of their names, unpacked."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from millpond.engine.arrow.source.unpacked import content_of

if TYPE_CHECKING:
    import io

    from millpond.engine.arrow.context import Context

    Stream: TypeAlias = pa.NativeFile | io.BufferedReader

_COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_SUFFIXES = tuple(_COMPRESSION)


def open_stream(path: str, context: Context) -> tuple[pa.NativeFile, Stream]:
    """The file, to be released in the end, and the stream to read from."""
    file = context.files.open(path)
    context.counters.add("files_opened")
    return file, unpacked(path, file)


def is_packed(path: str) -> bool:
    """Whether a file's name says that its content is compressed."""
    return path.endswith(_SUFFIXES)


def unpacked(path: str, file: pa.NativeFile) -> Stream:
    """The stream of a file's content."""
    for suffix, codec in _COMPRESSION.items():
        if path.endswith(suffix):
            return content_of(pa.CompressedInputStream(file, codec), path, file.size())
    return file
