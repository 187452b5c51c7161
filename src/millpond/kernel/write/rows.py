"""What is to be written as batches of the table's own columns; what does not fit is named."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Iterator
from numbers import Number
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from millpond.base.errors import SchemaError
from millpond.plan.arrow import to_arrow, to_arrow_schema
from millpond.plan.frames import check_polars, is_pandas_frame, table_of_pandas
from millpond.plan.node import Plan
from millpond.plan.types import (
    DATE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    List,
    Map,
    Struct,
    is_integral,
    types_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from millpond.plan.executor import Executor
    from millpond.plan.expr import Expr

_NO_FLOAT = 2.0**128 * (1 - 2.0**-25)
"""From here on the nearest number of 32 bits is infinity."""


def batches_of(data: Any, schema: Struct, *, engine: str | Executor) -> Iterator[pa.RecordBatch]:
    """The rows of a plan, of anything Arrow-like, of dictionaries, in the table's columns."""
    for batch in _source(data, schema, engine):
        yield fitted(batch, schema)


def checked(
    batches: Iterable[pa.RecordBatch], predicate: Expr, schema: Struct
) -> Iterator[pa.RecordBatch]:
    """Batches of which every row satisfies a predicate; another row is an error."""
    from millpond.plan.make import values

    for batch in batches:
        rows = values(pa.Table.from_batches([batch], to_arrow_schema(schema)))
        wrong = rows.filter(~predicate.coalesce(False)).head(1).to_pylist(engine="arrow")
        if wrong:
            raise SchemaError(
                f"a new row does not satisfy the predicate of the overwrite: {wrong[0]}",
                hint="overwrite with a predicate that all new rows satisfy",
            )
        yield batch


def _source(data: Any, schema: Struct, engine: str | Executor) -> Iterator[pa.RecordBatch]:
    if isinstance(data, Plan):
        yield from data.execute(engine=engine)
    elif isinstance(data, pa.RecordBatch):
        yield data
    elif is_pandas_frame(data):
        yield from table_of_pandas(data).to_batches()
    elif hasattr(data, "__arrow_c_stream__"):
        yield from _stream(data)
    elif hasattr(data, "toArrow"):  # a DataFrame of Spark
        yield from data.toArrow().to_batches()
    elif isinstance(data, Iterator):
        for item in data:
            if not isinstance(item, pa.RecordBatch):
                raise _no_rows(item, "an iterator gives record batches; rows go into a list")
            yield item
    elif isinstance(data, list | tuple) and all(isinstance(row, dict) for row in data):
        for row in data:
            _check_value(row, schema, "")
        try:
            table = pa.Table.from_pylist(list(data), to_arrow_schema(schema))
        except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
            raise SchemaError(f"a row does not fit the table: {error}") from error
        yield from table.to_batches()
    else:
        raise _no_rows(data, "give an Arrow table, a plan, a DataFrame or a list of dictionaries")


def _stream(data: Any) -> pa.RecordBatchReader:
    check_polars(data)
    try:
        return pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid as error:
        raise _no_rows(data, "give a table or a frame, not one of its columns") from error


def _no_rows(data: Any, hint: str) -> SchemaError:
    return SchemaError(f"rows can't be made of a {type(data).__name__}", hint=hint)


def _check_value(value: Any, type_: DataType, where: str) -> None:
    """Arrow drops members of a dictionary that it does not know, takes a text for a list of its
    letters, and cuts off what a column can't hold of a value; here these are errors."""
    if isinstance(type_, Struct) and isinstance(value, dict):
        for name, item in value.items():
            found = type_.get(name)
            if found is None:
                raise _unknown(f"{where}{name}", type_)
            _check_value(item, found.type, f"{where}{name}.")
    elif isinstance(type_, List) and isinstance(value, Collection) and not isinstance(value, str):
        for item in value:
            _check_value(item, type_.element, f"{where}element.")
    elif isinstance(type_, Map) and isinstance(value, dict | list | tuple):
        pairs = value.items() if isinstance(value, dict) else _pairs(value, type_, where)
        for key, item in pairs:
            _check_value(key, type_.key, f"{where}key.")
            _check_value(item, type_.value, f"{where}value.")
    elif _would_be_cut(value, type_):
        raise SchemaError(
            f"{value} in {where.rstrip('.')!r} is no {type_}",
            hint="convert it, or change the table's schema first",
        )


def _pairs(value: Collection[Any], type_: Map, where: str) -> Collection[Any]:
    if not all(isinstance(item, list | tuple) and len(item) == 2 for item in value):
        raise SchemaError(
            f"{value} in {where.rstrip('.')!r} is no {type_}",
            hint="give a dictionary, or pairs of a key and a value",
        )
    return value


def _would_be_cut(value: Any, type_: DataType) -> bool:
    if is_integral(type_):
        return not isinstance(value, int) and isinstance(value, Number) and not _is_whole(value)
    if type_ == FLOAT and isinstance(value, float):
        return math.isfinite(value) and abs(value) >= _NO_FLOAT
    if isinstance(type_, Struct):  # Arrow would take pairs and tuples, too
        return value is not None and not isinstance(value, dict)
    if type_ in (DATE, TIMESTAMP, TIMESTAMP_NTZ) and isinstance(value, Number):
        return not isinstance(value, int)
    if isinstance(value, dt.datetime):
        if value != value:  # pandas' NaT, which Arrow takes for a day
            return type_ == DATE
        has_more = value.time() != dt.time.min if type_ == DATE else getattr(value, "nanosecond", 0)
        return bool(has_more) or (type_ == TIMESTAMP_NTZ and value.tzinfo is not None)
    return isinstance(type_, List) and isinstance(value, str)


def _is_whole(value: Any) -> bool:
    try:
        return bool(int(value) == value)
    except (ValueError, OverflowError):
        return False


def fitted(batch: pa.RecordBatch, schema: Struct) -> pa.RecordBatch:
    """A batch in the table's columns: missing ones are null, narrower types are widened."""
    given = batch.schema.names
    _check_names(given, schema)
    columns = []
    for field in schema:
        array = (
            batch.column(field.name)
            if field.name in given
            else pa.nulls(batch.num_rows, to_arrow(field.type))
        )
        column = _conformed(array, field.type, field.name, nullable=field.nullable)
        if STRING in types_in(field.type):
            _check_texts(column, field.name)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=to_arrow_schema(schema))


def _check_texts(array: pa.Array, where: str) -> None:
    """Refuse bytes that are called text and are none: others could not read the file."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"the column {where!r} holds what is no text: {error}",
            hint="decode it, or write it to a binary column",
        ) from error


def _check_names(given: list[str], schema: Struct, where: str = "") -> None:
    seen: set[str] = set()
    for name in given:
        if name not in schema:
            raise _unknown(where + name, schema)
        if name in seen:
            raise SchemaError(
                f"the column {where + name!r} stands twice in the rows that are to be written",
                hint="leave one of them out",
            )
        seen.add(name)


def _conformed(array: pa.Array, type_: DataType, where: str, *, nullable: bool) -> pa.Array:
    """An array in a column's type, at every depth; nulls only where they may be."""
    if array.null_count and not nullable:
        raise SchemaError(
            f"the column {where!r} is null in a row, and the table forbids that",
            hint="give it a value, or leave the row out",
        )
    wanted = to_arrow(type_)
    if array.type == wanted and not _has_required(type_):
        return array
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if at.is_dictionary(array.type):
        array = _decoded(array)
    if at.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if at.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if isinstance(type_, Struct) and at.is_struct(array.type):
        return _struct(array, type_, where)
    if isinstance(type_, List) and _is_list(array.type):
        return _list(array, type_, where)
    if isinstance(type_, Map) and at.is_map(array.type):
        return _map(array, type_, where)
    if not _may_cast(array.type, wanted):
        raise _misfit(array, type_, where, "one can't stand for the other")
    try:
        found = array.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _misfit(array, type_, where, str(error)) from error
    if type_ == FLOAT and at.is_float64(array.type):
        became = pc.and_(pc.is_inf(found), pc.invert(pc.is_inf(array)))
        if pc.any(became).as_py():
            raise _misfit(array, type_, where, "some number is too large, and would be infinite")
    return found


def _decoded(array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary array; pyarrow can't choose among views."""
    words = array.dictionary
    if at.is_string_view(words.type) or at.is_binary_view(words.type):
        is_text = at.is_string_view(words.type)
        words = words.cast(pa.large_string() if is_text else pa.large_binary())
    return pa.DictionaryArray.from_arrays(array.indices, words).dictionary_decode()


def _struct(array: pa.StructArray, type_: Struct, where: str) -> pa.Array:
    given = [array.type.field(i).name for i in range(array.type.num_fields)]
    _check_names(given, type_, f"{where}.")
    here = array.is_valid()
    children = []
    for field in type_:
        if field.name in given:
            child = array.field(given.index(field.name))
        else:
            child = pa.nulls(len(array), to_arrow(field.type))
        inner = f"{where}.{field.name}"
        if not field.nullable and child.filter(here).null_count:
            _conformed(child.filter(here), field.type, inner, nullable=False)
        children.append(_conformed(child, field.type, inner, nullable=True))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(to_arrow(type_)), mask=mask)


def _list(array: pa.Array, type_: List, where: str) -> pa.Array:
    if not at.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    plain = pa.concat_arrays([array]) if array.offset else array
    values = _conformed(plain.values, type_.element, f"{where}.element", nullable=True)
    if not type_.contains_null:
        _conformed(plain.flatten(), type_.element, f"{where}.element", nullable=False)
    mask = plain.is_null() if plain.null_count else None
    return pa.ListArray.from_arrays(plain.offsets, values, to_arrow(type_), mask=mask)


def _map(array: pa.MapArray, type_: Map, where: str) -> pa.Array:
    plain = pa.concat_arrays([array]) if array.offset else array
    keys = _conformed(plain.keys, type_.key, f"{where}.key", nullable=False)
    items = _conformed(plain.items, type_.value, f"{where}.value", nullable=True)
    if not type_.contains_null:
        _conformed(plain.drop_null().items, type_.value, f"{where}.value", nullable=False)
    mask = plain.is_null() if plain.null_count else None
    return pa.MapArray.from_arrays(plain.offsets, keys, items, to_arrow(type_), mask=mask)


def _has_required(type_: DataType) -> bool:
    """Whether nulls have to be looked for below the top."""
    if isinstance(type_, Struct):
        return any(not f.nullable or _has_required(f.type) for f in type_)
    if isinstance(type_, List):
        return not type_.contains_null or _has_required(type_.element)
    if isinstance(type_, Map):
        return not type_.contains_null or any(map(_has_required, (type_.key, type_.value)))
    return False


def _is_list(type_: pa.DataType) -> bool:
    return bool(at.is_list(type_) or at.is_large_list(type_) or at.is_fixed_size_list(type_))


def _is_text(type_: pa.DataType) -> bool:
    return bool(at.is_string(type_) or at.is_large_string(type_) or at.is_string_view(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    names = (at.is_binary, at.is_large_binary, at.is_fixed_size_binary, at.is_binary_view)
    return any(is_kind(type_) for is_kind in names)


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], tuple[Callable[[pa.DataType], bool], ...]], ...]
_KINDS = (
    (at.is_integer, (at.is_integer, at.is_floating, at.is_decimal)),
    (at.is_floating, (at.is_floating,)),
    (at.is_decimal, (at.is_decimal,)),
    (_is_text, (_is_text,)),
    (_is_bytes, (_is_bytes,)),
    (at.is_boolean, (at.is_boolean,)),
    (at.is_date, (at.is_date, at.is_timestamp)),
    (at.is_timestamp, (at.is_timestamp,)),
)
"""Which kinds of values may become which; whether each value fits is seen when it is cast."""


def _may_cast(source: pa.DataType, target: pa.DataType) -> bool:
    if at.is_timestamp(source) and source.tz is not None and getattr(target, "tz", "") is None:
        return False  # whose wall clock?
    return any(
        is_kind(source) and any(becomes(target) for becomes in allowed)
        for is_kind, allowed in _KINDS
    )


def _misfit(array: pa.Array, type_: DataType, where: str, why: str) -> SchemaError:
    hint = "cast it, or change the table's schema first"
    if "lose data" in why:
        hint = "round it to microseconds first"
    return SchemaError(
        f"the column {where!r} is {array.type} in the rows and {type_} in the table: {why}",
        hint=hint,
    )


def _unknown(name: str, schema: Struct) -> SchemaError:
    return SchemaError(
        f"the table has no column {name!r}",
        hint=f"{schema.near(name)}; a new column needs set_metadata(schema=…) first",
    )
