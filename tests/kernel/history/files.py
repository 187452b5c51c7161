"""Data files and change files as bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.kernel.history.model import Row

ARROW: Final = {
    "long": pa.int64(),
    "integer": pa.int32(),
    "double": pa.float64(),
    "string": pa.string(),
}


def parquet_bytes(rows: Sequence[Row], types: Mapping[str, str]) -> bytes:
    """A Parquet file of two rows in a row group, so that positions have to be counted across."""
    schema = pa.schema([(name, ARROW[type_]) for name, type_ in types.items()])
    table = pa.Table.from_pylist(list(rows), schema=schema)
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=2)
    return sink.getvalue()
