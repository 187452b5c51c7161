"""Types as Arrow types and back. The only module of `plan` that needs pyarrow to do its work.

>>> from millpond.plan.types import Struct, LONG, TIMESTAMP
>>> to_arrow_schema(Struct.of(id=LONG, at=TIMESTAMP))
id: int64
at: timestamp[us, tz=UTC]
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from millpond.base.errors import SchemaError
from millpond.plan import types as t

if TYPE_CHECKING:
    import pyarrow as pa


@cache
def _primitives() -> dict[t.Primitive, pa.DataType]:
    import pyarrow as pa

    return {
        t.NULL: pa.null(),
        t.BOOLEAN: pa.bool_(),
        t.BYTE: pa.int8(),
        t.SHORT: pa.int16(),
        t.INTEGER: pa.int32(),
        t.LONG: pa.int64(),
        t.FLOAT: pa.float32(),
        t.DOUBLE: pa.float64(),
        t.STRING: pa.string(),
        t.BINARY: pa.binary(),
        t.DATE: pa.date32(),
        t.TIMESTAMP: pa.timestamp("us", tz="UTC"),
        t.TIMESTAMP_NTZ: pa.timestamp("us"),
        # In Spark's order: its batches are taken as they come.
        t.VARIANT: pa.struct(
            [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)]
        ),
    }


@cache
def to_arrow(type_: t.DataType) -> pa.DataType:
    """The Arrow type that holds values of this type."""
    import pyarrow as pa

    if isinstance(type_, t.Primitive):
        return _primitives()[type_]
    if isinstance(type_, t.Decimal):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, t.List):
        return pa.list_(_inner("element", type_.element, nullable=type_.contains_null))
    if isinstance(type_, t.Map):
        item = _inner("value", type_.value, nullable=type_.contains_null)
        return pa.map_(pa.field("key", to_arrow(type_.key), False), item)
    return pa.struct([to_arrow_field(field) for field in type_.fields])


def to_arrow_field(field: t.Field) -> pa.Field:
    """One field as Arrow's; metadata stays behind."""

    return _inner(field.name, field.type, nullable=field.nullable)


def _inner(name: str, type_: t.DataType, *, nullable: bool) -> pa.Field:
    import pyarrow as pa

    # Arrow refuses a field of nulls that says it has none; an empty list is of such a type.
    return pa.field(name, to_arrow(type_), nullable or type_ == t.NULL)


@cache
def to_arrow_schema(schema: t.Struct) -> pa.Schema:
    """A schema as Arrow's."""
    import pyarrow as pa

    return pa.schema([to_arrow_field(field) for field in schema.fields])


_OTHER_MEANING: Final = ("pandas.period", "pandas.interval", "arrow.bool8")
"""Extension types whose storage, read as what it is, would be other values."""


def from_arrow(type_: pa.DataType) -> t.DataType:
    """The type of an Arrow type's values; one without a counterpart is an error.

    Large layouts, views of strings, dictionaries, other time units and zones map to the plain type
    that holds the same values (`conform` refuses nanoseconds that are no whole microseconds).
    Unsigned 64-bit integers, times of day and durations have none, nor have views of lists, which
    Arrow itself does not convert reliably.
    """
    import pyarrow as pa
    import pyarrow.types as at

    for ours, theirs in _primitives().items():
        if type_ == theirs and ours != t.VARIANT:
            return ours
    if at.is_decimal(type_):
        return t.Decimal(type_.precision, type_.scale)
    if at.is_large_string(type_) or at.is_string_view(type_):
        return t.STRING
    if at.is_large_binary(type_) or at.is_binary_view(type_) or at.is_fixed_size_binary(type_):
        return t.BINARY
    if at.is_uint8(type_):
        return t.SHORT
    if at.is_uint16(type_):
        return t.INTEGER
    if at.is_uint32(type_):
        return t.LONG
    if at.is_date64(type_):
        return t.DATE
    if at.is_float16(type_):
        return t.FLOAT
    if at.is_timestamp(type_):
        return t.TIMESTAMP_NTZ if type_.tz is None else t.TIMESTAMP
    if at.is_dictionary(type_) or at.is_run_end_encoded(type_):
        return from_arrow(type_.value_type)
    if at.is_list(type_) or at.is_large_list(type_) or at.is_fixed_size_list(type_):
        return t.List(from_arrow(type_.value_type), type_.value_field.nullable)
    if at.is_map(type_):
        key, item = from_arrow(type_.key_type), from_arrow(type_.item_type)
        return t.Map(key, item, type_.item_field.nullable)
    if at.is_struct(type_):
        return t.Struct(tuple(from_arrow_field(type_.field(i)) for i in range(type_.num_fields)))
    if isinstance(type_, pa.BaseExtensionType):
        if type_.extension_name in _OTHER_MEANING:
            raise SchemaError(
                f"Arrow type {type_} has no counterpart: its numbers mean something else",
                hint="cast it first, to a time or a string",
            )
        return from_arrow(type_.storage_type)
    raise SchemaError(
        f"Arrow type {type_} has no counterpart",
        hint="leave it out, or cast it first: uint64 to decimal128(20, 0), others to int64",
    )


def from_arrow_field(field: pa.Field) -> t.Field:
    """One Arrow field as ours."""
    return t.Field(field.name, from_arrow(field.type), field.nullable)


def conform(table: pa.Table, schema: t.Struct) -> pa.Table:
    """The table with exactly the Arrow types of this schema: plain layouts, microseconds, UTC."""
    import pyarrow as pa

    table = _without_views(table)
    target = to_arrow_schema(schema)
    if table.schema.equals(target, check_metadata=True):
        return table
    try:
        return table.cast(target)
    except (pa.ArrowException, ValueError) as error:
        raise _misfit(table, target) or SchemaError(
            f"this table does not fit {_short(schema)}: {error}", hint="cast it before"
        ) from error


def _without_views(table: pa.Table) -> pa.Table:
    """Return a table whose dictionaries hold plain values: Arrow can't choose among views."""
    import pyarrow as pa
    import pyarrow.types as at

    for position, field in enumerate(table.schema):
        words = field.type.value_type if at.is_dictionary(field.type) else None
        if words is not None and (at.is_string_view(words) or at.is_binary_view(words)):
            plain = pa.large_string() if at.is_string_view(words) else pa.large_binary()
            type_ = pa.dictionary(field.type.index_type, plain, ordered=field.type.ordered)
            chunks = [
                pa.DictionaryArray.from_arrays(each.indices, each.dictionary.cast(plain))
                for each in table.column(position).chunks
            ]
            column = pa.chunked_array(chunks, pa.dictionary(field.type.index_type, plain))
            table = table.set_column(position, field.with_type(type_), column.cast(type_))
    return table


def _misfit(table: pa.Table, target: pa.Schema) -> SchemaError | None:
    """The error that names the column which does not fit, if it is the fault of one."""
    import pyarrow as pa

    if table.column_names != target.names:
        return None
    for column, field in zip(table.columns, target, strict=True):
        try:
            column.cast(field.type)
        except (pa.ArrowException, ValueError) as reason:
            hint = "cast it before"
            if "lose data" in str(reason):
                hint = "round it before, with floor_temporal of Arrow or dt.floor('us') of pandas"
            return SchemaError(
                f"column {field.name!r} is {column.type} and does not fit {field.type}: {reason}",
                hint=hint,
            )
    return None


def _short(schema: t.Struct) -> str:
    text = str(schema)
    return text if len(text) <= 200 else text[:199] + "…"


def from_arrow_schema(schema: pa.Schema) -> t.Struct:
    """An Arrow schema as ours."""
    return t.Struct(tuple(from_arrow_field(schema.field(i)) for i in range(len(schema))))
