"""Bytes of pages, unpacked, and held against the size that is said of them."""

from __future__ import annotations

from functools import cache
from threading import local
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zstandard import ZstdDecompressor


class DamagedPage(ValueError):  # noqa: N818 - pyarrow is asked then, and says what is wrong
    """A page, or a column chunk, in which something does not fit."""

    def __init__(self) -> None:
        super().__init__("a page is damaged")


def unpack(packed: pa.Buffer, codec: str, size: int) -> pa.Buffer:
    """The bytes of a page, which are so many.

    >>> unpack(pa.Codec("snappy").compress(b"weir " * 20), "SNAPPY", 100).slice(95).to_pybytes()
    b'weir '
    """
    found = CODECS[codec](packed, size) if packed.size else packed
    if found.size != size:
        raise DamagedPage
    return found


def _stored(packed: pa.Buffer, size: int) -> pa.Buffer:  # noqa: ARG001 - one of several alike
    return packed


def _zstd(packed: pa.Buffer, size: int) -> pa.Buffer:
    # pyarrow prepares anew for each page, which takes 10 µs: longer than unpacking most pages.
    from zstandard import ZstdError

    try:
        return pa.py_buffer(_unpacker().decompress(packed, max_output_size=size))
    except (ZstdError, MemoryError):  # it makes as much room as the page itself says
        raise DamagedPage from None


def _unpacker() -> ZstdDecompressor:
    """This thread's own."""
    found: ZstdDecompressor | None = getattr(_THREAD, "zstd", None)
    if found is None:
        from zstandard import ZstdDecompressor

        found = _THREAD.zstd = ZstdDecompressor()
    return found


_THREAD: Final = local()


# pyarrow's codecs fill as many bytes as they find, and leave the others as they were. So these two
# are asked how many they have packed.


def _snappy(packed: pa.Buffer, size: int) -> pa.Buffer:
    stated = shift = 0
    for byte in packed.slice(0, min(5, packed.size)).to_pybytes():
        stated |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    return _by_pyarrow("snappy", packed, size, stated)


def _gzip(packed: pa.Buffer, size: int) -> pa.Buffer:
    stated = int.from_bytes(packed.slice(max(packed.size - 4, 0)).to_pybytes(), "little")
    return _by_pyarrow("gzip", packed, size, stated)


def _by_pyarrow(codec: str, packed: pa.Buffer, size: int, stated: int) -> pa.Buffer:
    if stated != size:
        raise DamagedPage
    return _codec(codec).decompress(packed, size)


@cache
def _codec(name: str) -> pa.Codec:
    return pa.Codec(name)


CODECS: Final[Mapping[str, Callable[[pa.Buffer, int], pa.Buffer]]] = {
    "UNCOMPRESSED": _stored,
    "SNAPPY": _snappy,
    "GZIP": _gzip,
    "ZSTD": _zstd,
}
"""BROTLI does not tell how much it has packed, and LZ4 is one name of pyarrow's for two layouts."""
