"""Types as Spark's and back.

>>> from millpond.plan.types import LONG, List, Struct
>>> to_spark(Struct.of(a=List(LONG))).simpleString()
'struct<a:array<bigint>>'
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from millpond.base.errors import SchemaError
from millpond.plan import types as t

if TYPE_CHECKING:
    from pyspark.sql import types as st


@cache
def _primitives() -> dict[t.Primitive, st.DataType]:
    from pyspark.sql import types as st

    return {
        t.NULL: st.NullType(),
        t.BOOLEAN: st.BooleanType(),
        t.BYTE: st.ByteType(),
        t.SHORT: st.ShortType(),
        t.INTEGER: st.IntegerType(),
        t.LONG: st.LongType(),
        t.FLOAT: st.FloatType(),
        t.DOUBLE: st.DoubleType(),
        t.STRING: st.StringType(),
        t.BINARY: st.BinaryType(),
        t.DATE: st.DateType(),
        t.TIMESTAMP: st.TimestampType(),
        t.TIMESTAMP_NTZ: st.TimestampNTZType(),
        t.VARIANT: st.VariantType(),
    }


@cache
def to_spark(type_: t.DataType) -> st.DataType:
    """The Spark type of these values."""
    from pyspark.sql import types as st

    if isinstance(type_, t.Primitive):
        return _primitives()[type_]
    if isinstance(type_, t.Decimal):
        return st.DecimalType(type_.precision, type_.scale)
    if isinstance(type_, t.List):
        return st.ArrayType(to_spark(type_.element), type_.contains_null)
    if isinstance(type_, t.Map):
        return st.MapType(to_spark(type_.key), to_spark(type_.value), type_.contains_null)
    return to_spark_schema(type_)


_NAMES: Final = {
    t.NULL: "void",
    t.BOOLEAN: "boolean",
    t.BYTE: "tinyint",
    t.SHORT: "smallint",
    t.INTEGER: "int",
    t.LONG: "bigint",
    t.FLOAT: "float",
    t.DOUBLE: "double",
    t.STRING: "string",
    t.BINARY: "binary",
    t.DATE: "date",
    t.TIMESTAMP: "timestamp_ltz",  # what "timestamp" is, a session's settings say
    t.TIMESTAMP_NTZ: "timestamp_ntz",
    t.VARIANT: "variant",
}


def to_cast(type_: t.DataType) -> st.DataType | str:
    """What to cast a column to: a name if there is one, since a type takes five calls to the JVM.

    >>> to_cast(t.LONG), to_cast(t.Decimal(9, 2))
    ('bigint', 'decimal(9,2)')
    """
    if isinstance(type_, t.Primitive):
        return _NAMES[type_]
    if isinstance(type_, t.Decimal):
        return f"decimal({type_.precision},{type_.scale})"
    return to_spark(type_)


def to_spark_schema(schema: t.Struct) -> st.StructType:
    """A schema as Spark's; metadata stays behind."""
    from pyspark.sql import types as st

    fields = [st.StructField(f.name, to_spark(f.type), f.nullable) for f in schema]
    return st.StructType(fields)


def from_spark(type_: st.DataType) -> t.DataType:
    """The type of a Spark type's values; one without a counterpart is an error."""
    from pyspark.sql import types as st

    if isinstance(type_, st.StringType):  # also CHAR and VARCHAR, and any collation
        return t.STRING
    for ours, theirs in _primitives().items():
        if type_ == theirs:
            return ours
    if isinstance(type_, st.DecimalType):
        return t.Decimal(type_.precision, type_.scale)
    if isinstance(type_, st.ArrayType):
        return t.List(from_spark(type_.elementType), type_.containsNull)
    if isinstance(type_, st.MapType):
        key, value = from_spark(type_.keyType), from_spark(type_.valueType)
        return t.Map(key, value, type_.valueContainsNull)
    if isinstance(type_, st.StructType):
        return t.Struct(tuple(t.Field(f.name, from_spark(f.dataType), f.nullable) for f in type_))
    raise SchemaError(
        f"Spark's type {type_.simpleString()} has no counterpart",
        hint="cast it in the query, for example an interval to string or a time to string",
    )


@cache
def all_nullable(type_: t.DataType) -> t.DataType:
    """The type with nulls allowed everywhere: two types that agree in this hold the same values."""
    if isinstance(type_, t.List):
        return t.List(all_nullable(type_.element))
    if isinstance(type_, t.Map):
        return t.Map(all_nullable(type_.key), all_nullable(type_.value))
    if isinstance(type_, t.Struct):
        return t.Struct(tuple(t.Field(f.name, all_nullable(f.type)) for f in type_))
    return type_
