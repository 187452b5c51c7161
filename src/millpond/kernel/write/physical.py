"""The table's columns as files hold them: physical names and field ids, at every depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from millpond.plan.arrow import to_arrow
from millpond.plan.sources import STORED_ID
from millpond.plan.types import Field, List, Map, Struct

if TYPE_CHECKING:
    from millpond.plan.types import DataType


def renamed(batch: pa.RecordBatch, schema: Struct) -> pa.RecordBatch:
    """Logical columns under their physical names, at every depth."""
    arrays = [_as(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(schema.names))


def _as(column: pa.Array, type_: DataType) -> pa.Array:
    """The same values under the names of another type of the same shape."""
    wanted = to_arrow(type_)
    if column.type == wanted:
        return column
    if isinstance(type_, Struct):
        parts = [_as(part, f.type) for part, f in zip(column.flatten(), type_, strict=True)]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=mask)
    if isinstance(type_, List):
        plain = column if not column.offset else pa.concat_arrays([column])
        values = _as(plain.values, type_.element)
        mask = plain.is_null() if plain.null_count else None
        return pa.ListArray.from_arrays(plain.offsets, values, wanted, mask=mask)
    if isinstance(type_, Map):
        plain = column if not column.offset else pa.concat_arrays([column])
        keys, items = _as(plain.keys, type_.key), _as(plain.items, type_.value)
        mask = plain.is_null() if plain.null_count else None
        return pa.MapArray.from_arrays(plain.offsets, keys, items, wanted, mask=mask)
    return column.cast(wanted)


def arrow_schema(schema: Struct) -> pa.Schema:
    """A physical schema for Parquet, with the field ids that it carries."""
    return pa.schema([_field(item) for item in schema])


def _field(item: Field) -> pa.Field:
    number = item.metadata_dict().get(STORED_ID)
    metadata = None if number is None else {"PARQUET:field_id": str(number)}
    return pa.field(item.name, _type(item.type), item.nullable, metadata)


def _type(type_: DataType) -> pa.DataType:
    if isinstance(type_, Struct):
        return pa.struct([_field(item) for item in type_])
    if isinstance(type_, List):
        return pa.list_(pa.field("element", _type(type_.element), type_.contains_null))
    if isinstance(type_, Map):
        value = pa.field("value", _type(type_.value), type_.contains_null)
        return pa.map_(pa.field("key", _type(type_.key), nullable=False), value)
    return to_arrow(type_)
