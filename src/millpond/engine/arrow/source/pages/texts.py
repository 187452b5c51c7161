"""Texts out of pages: where each begins is only known to who has read all before it.

pyarrow reads them, out of a Parquet file of one column that is put together in memory around the
page: around a chunk's dictionary and the numbers that are wanted of it, or around a page of texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millpond.engine.arrow.source.pages.compact import (
    I32,
    STRUCT,
    TEXT,
    flag,
    i32,
    i64,
    list_of,
    nested,
    struct,
    text,
    varint,
)
from millpond.engine.arrow.source.pages.page import DATA_V2, PLAIN, RLE_DICTIONARY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

# Not LZ4: pyarrow has one name for two layouts of it.
CODECS: Final[Mapping[str, int]] = {
    "UNCOMPRESSED": 0,
    "SNAPPY": 1,
    "GZIP": 2,
    "BROTLI": 4,
    "ZSTD": 6,
}
_MAGIC: Final = b"PAR1"
_BYTE_ARRAY, _REQUIRED, _UTF8 = 6, 0, 0
_NAME: Final = b"t"


def texts_by_number(
    dictionary: memoryview, codec: str, numbers: NDArray[np.int64], type_: pa.DataType
) -> pa.Array:
    """The texts that have these numbers in a dictionary page, which is as it was stored."""
    count = len(numbers)
    packed = np.zeros(-(-count // 8) * 8, "<u4")
    packed[:count] = numbers
    # As runs of numbers of 32 bits, packed bits are just numbers.
    body = bytes([32]) + varint(len(packed) // 8 << 1 | 1) + packed.tobytes()
    return _read(dictionary, codec, body, count, RLE_DICTIONARY, type_)


def texts_of_page(values: memoryview, count: int, type_: pa.DataType) -> pa.Array:
    """All texts of a page that stand there one after the other."""
    return _read(memoryview(b""), "UNCOMPRESSED", values, count, PLAIN, type_)


def _read(
    dictionary: memoryview,
    codec: str,
    body: bytes | memoryview,
    count: int,
    encoding: int,
    type_: pa.DataType,
) -> pa.Array:
    facts = (i32(1, count), i32(2, 0), i32(3, count), i32(4, encoding), i32(5, 0), i32(6, 0))
    header = struct(
        i32(1, DATA_V2),
        i32(2, len(body)),
        i32(3, len(body)),
        nested(8, struct(*facts, flag(7, value=False))),
    )
    data = len(_MAGIC) + len(dictionary)
    end = data + len(header) + len(body)
    footer = _footer(codec, count, data, end, type_, has_dictionary=bool(dictionary))
    length = len(footer).to_bytes(4, "little")
    parts: list[bytes | memoryview] = [_MAGIC, dictionary, header, body, footer, length, _MAGIC]
    file = pq.ParquetFile(pa.BufferReader(b"".join(parts)))
    return file.reader.read_column(0).chunk(0)


def _footer(
    codec: str, count: int, data: int, end: int, type_: pa.DataType, *, has_dictionary: bool
) -> bytes:
    utf8 = [i32(6, _UTF8)] if type_ == pa.string() else []
    schema = [
        struct(text(4, b"r"), i32(5, 1)),
        struct(i32(1, _BYTE_ARRAY), i32(3, _REQUIRED), text(4, _NAME), *utf8),
    ]
    begin = len(_MAGIC)
    column = struct(
        i32(1, _BYTE_ARRAY),
        list_of(2, I32, [varint(PLAIN << 1), varint(RLE_DICTIONARY << 1)]),
        list_of(3, TEXT, [varint(len(_NAME)) + _NAME]),
        i32(4, CODECS[codec]),
        i64(5, count),
        i64(6, end - begin),
        i64(7, end - begin),
        i64(9, data),
        *([i64(11, begin)] if has_dictionary else []),
    )
    chunk = struct(i64(2, begin), nested(3, column))
    group = struct(list_of(1, STRUCT, [chunk]), i64(2, end - begin), i64(3, count))
    return struct(i32(1, 2), list_of(2, STRUCT, schema), i64(3, count), list_of(4, STRUCT, [group]))
