"""Rows of a pond as Parquet, and back."""

from __future__ import annotations

from dataclasses import fields
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.base.errors import PondError
from millpond.fs.entry import EntryType, Row
from millpond.fs.oplog.columns import column
from millpond.plan.types import BINARY, BOOLEAN, LONG, STRING, TIMESTAMP, DataType, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

PARTITION: Final = "part_id"
GROUP_BYTES: Final = 1 << 20
"""How much content is decoded to read one of a file's many."""

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
_FILE_SCHEMA: Final = pa.schema(list(_TYPES.items()))
_NAMES: Final = tuple(_TYPES)
_LIGHT: Final = tuple(name for name in _NAMES if name != "content")
_ROW_FIELDS: Final = tuple(field.name for field in fields(Row))
_ENTRY_TYPES: Final = {str(kind): kind for kind in EntryType}


def to_table(rows: Sequence[Row]) -> pa.Table:
    """Rows of one directory, as its files hold them."""
    arrays = [column([getattr(row, name) for row in rows], type_) for name, type_ in _TYPES.items()]
    return pa.table(arrays, names=list(_NAMES))


def write_parquet(rows: Sequence[Row]) -> bytes:
    """Rows of one directory as a file; contents are in groups, so that one is read alone."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, _FILE_SCHEMA, compression="zstd", use_dictionary=False, write_page_checksum=True
    ) as writer:
        for group in _groups(rows):
            writer.write_table(to_table(group))
    return bytes(sink.getvalue())


def _groups(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    start, size = 0, 0
    for number, row in enumerate(rows):
        size += len(row.content or b"")
        if size > GROUP_BYTES and number > start:
            yield rows[start:number]
            start, size = number, len(row.content or b"")
    yield rows[start:]


def check_columns(schema: pa.Schema) -> None:
    """Raise unless a file has the columns that files of rows have."""
    for name, type_ in _TYPES.items():
        found = schema.field(name).type
        is_long = found in (pa.large_string(), pa.large_binary())  # others may write it so
        if found != type_ and not (is_long and str(found) == f"large_{type_}"):
            raise ValueError(f"its column {name} is {found}, not {type_}")


def read_rows(table: pa.Table, part_id: str) -> list[Row]:
    """Rows out of a file, without their contents."""
    columns: list[Iterable[Any]] = []
    for name in _ROW_FIELDS:
        if name not in _LIGHT:
            columns.append(repeat(part_id if name == PARTITION else None))
            continue
        found = table.column(name)
        if pa.types.is_timestamp(found.type):
            found = found.cast(pa.int64())
        values = found.to_pylist()
        columns.append(map(_entry_type, values) if name == "entry_type" else values)
    return list(map(Row, *columns))


def _entry_type(value: str) -> EntryType:
    found = _ENTRY_TYPES.get(value)
    if found is None:
        raise PondError(
            f"the pond has a node of the kind {value!r}, which this version does not know",
            hint="install a newer millpond",
        )
    return found


def light_columns() -> list[str]:
    """Everything but contents."""
    return list(_LIGHT)
