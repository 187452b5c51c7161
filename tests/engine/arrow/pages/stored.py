"""Column chunks as they are in files, and what pyarrow reads out of them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from millpond.engine.arrow.native.library import library
from millpond.engine.arrow.source.leaves import Layout
from millpond.engine.arrow.source.pages import StoredChunk, StoredLeaf

if TYPE_CHECKING:
    from ctypes import CDLL

LIBRARY = library()
needs_library = pytest.mark.skipif(
    LIBRARY is None, reason="installed without a C compiler, so that pyarrow reads all pages"
)
CODECS = ("none", "snappy", "gzip", "zstd")


@dataclass(frozen=True)
class Stored:
    """The first column chunk of a file, its leaf, and its column as pyarrow reads it."""

    content: bytes
    leaf: StoredLeaf | None
    codec: str
    column: pa.Array

    def chunk(self, content: bytes | None = None, *, made: CDLL | None = LIBRARY) -> StoredChunk:
        assert self.leaf is not None
        assert made is not None
        stored = self.content if content is None else content
        return StoredChunk(made, stored, self.leaf, self.codec, len(self.column))


def stored(table: pa.Table, **options: Any) -> Stored:
    """The first leaf of a table, written by pyarrow."""
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=False, **options)
    written = sink.getvalue()
    file = pq.ParquetFile(io.BytesIO(written))
    chunk = file.metadata.row_group(0).column(0)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    layout = Layout("a.parquet", file.schema_arrow, file.metadata.num_columns)
    leaf = StoredLeaf.of(file.metadata.schema.column(0), layout.place(0))
    column = file.read().column(0).combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    end = start + chunk.total_compressed_size
    return Stored(written[start:end], leaf, chunk.compression, column)


def _texts(rng: np.random.Generator, count: int, distinct: int) -> pa.Array:
    numbers = rng.integers(0, distinct, count)
    lengths = rng.integers(0, 40, distinct)
    return pa.array([f"{'ä' * int(lengths[n] % 5)}{n}{'x' * int(lengths[n])}" for n in numbers])


def _whole(type_: pa.DataType) -> Any:
    def make(rng: np.random.Generator, count: int, distinct: int) -> pa.Array:
        return pa.array(rng.integers(-distinct, distinct, count)).cast(type_)

    return make


def _real(type_: pa.DataType) -> Any:
    def make(rng: np.random.Generator, count: int, distinct: int) -> pa.Array:
        found = rng.integers(-distinct, distinct, count) / 8
        found[rng.random(count) < 0.05] = np.nan
        return pa.array(found).cast(type_)

    return make


KINDS = {
    "string": _texts,
    "binary": lambda *args: _texts(*args).cast(pa.binary()),
    "int": _whole(pa.int32()),
    "long": _whole(pa.int64()),
    "date": lambda *args: _whole(pa.int32())(*args).cast(pa.date32()),
    "micros": lambda *args: _whole(pa.int64())(*args).cast(pa.timestamp("us", tz="UTC")),
    "millis": lambda *args: _whole(pa.int64())(*args).cast(pa.timestamp("ms")),
    "float": _real(pa.float32()),
    "double": _real(pa.float64()),
}


@st.composite
def columns(draw: st.DrawFn) -> pa.Table:
    """One column with one leaf: values of any kind, with nulls, in up to two structs."""
    count = draw(st.integers(1, 3_000))
    distinct = draw(st.sampled_from((1, 2, 7, 300, 2_000)))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    values = KINDS[draw(st.sampled_from(sorted(KINDS)))](rng, count, distinct)
    if draw(st.booleans()):
        values = values.sort() if hasattr(values, "sort") else values  # long runs
    share = draw(st.sampled_from((0.0, 0.01, 0.5, 1.0)))
    nullable = draw(st.booleans())
    if nullable:
        values = pa.array(values.to_pylist(), values.type, mask=rng.random(count) < share)
    field = pa.field("v", values.type, nullable=nullable)
    for depth in range(draw(st.integers(0, 2))):
        nullable = draw(st.booleans())
        gone = pa.array(rng.random(count) < share) if nullable else None
        values = pa.StructArray.from_arrays([values], fields=[field], mask=gone)
        field = pa.field(f"s{depth}", values.type, nullable=nullable)
    return pa.table([values], schema=pa.schema([field]))


OPTIONS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(CODECS),
        "data_page_version": st.sampled_from(("1.0", "2.0")),
        "data_page_size": st.sampled_from((64, 3_000, 1 << 20)),
        "use_dictionary": st.booleans(),
        "dictionary_pagesize_limit": st.sampled_from((100, 1 << 20)),
        "write_batch_size": st.sampled_from((16, 1_024)),
    }
)
