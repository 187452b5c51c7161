"""Rows of a pond as Parquet, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.fs.entry import EntryType, Row
from millpond.fs.oplog.columns import column
from millpond.plan.types import BINARY, BOOLEAN, LONG, STRING, TIMESTAMP, DataType, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PARTITION: Final = "part_id"

SCHEMA: Final = Struct.of(
    txn_seq=LONG,
    part_id=STRING,
    node_id=STRING,
    name=STRING,
    entry_type=STRING,
    version=LONG,
    timestamp=TIMESTAMP,
    size=LONG,
    blake3=STRING,
    content=BINARY,
    delta_version=LONG,
    staged_commit=STRING,
    min_event_time=TIMESTAMP,
    max_event_time=TIMESTAMP,
    min_override=TIMESTAMP,
    max_override=TIMESTAMP,
    time_column=STRING,
    factory=STRING,
    config=STRING,
    extended_attributes=STRING,
    removed=BOOLEAN,
)
"""The columns of the OpLog, which is a Delta table like any other."""

_ARROW: Final[dict[DataType, pa.DataType]] = {
    STRING: pa.string(),
    LONG: pa.int64(),
    BINARY: pa.binary(),
    BOOLEAN: pa.bool_(),
}
_TYPES: Final = {
    field.name: _ARROW.get(field.type, pa.timestamp("us", "UTC"))
    for field in SCHEMA
    if field.name != PARTITION
}
_NAMES: Final = tuple(_TYPES)
_LIGHT: Final = tuple(name for name in _NAMES if name != "content")


def to_table(rows: Sequence[Row]) -> pa.Table:
    """Rows of one directory, as its files hold them."""
    arrays = [column([getattr(row, name) for row in rows], type_) for name, type_ in _TYPES.items()]
    return pa.table(arrays, names=list(_NAMES))


def write_parquet(rows: Sequence[Row]) -> bytes:
    """Rows of one directory as a file."""
    sink = pa.BufferOutputStream()
    pq.write_table(to_table(rows), sink, compression="zstd", use_dictionary=False)
    return bytes(sink.getvalue())


def read_rows(table: pa.Table, part_id: str) -> list[Row]:
    """Rows out of a file, without their contents."""
    columns: list[list[Any]] = []
    for name in _LIGHT:
        found = table.column(name)
        if pa.types.is_timestamp(found.type):
            found = found.cast(pa.int64())
        columns.append(found.to_pylist())
    named = dict(zip(_LIGHT, columns, strict=True))
    types = [EntryType(value) for value in named.pop("entry_type")]
    others = list(named)
    return [
        Row(part_id=part_id, entry_type=type_, **dict(zip(others, values, strict=True)))
        for type_, *values in zip(types, *named.values(), strict=True)
    ]


def light_columns() -> Iterable[str]:
    """Everything but contents."""
    return list(_LIGHT)
