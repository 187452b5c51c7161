"""Parquet timestamps in nanoseconds, rounded down to microseconds: Spark itself reads only longs.

The first file of a scan tells whether to look for them: only if it has some, the footers of the
others are read. A scan that begins with other files fails at the first column of nanoseconds.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.base.errors import MillpondError
from millpond.engine.spark.lambdas import each
from millpond.engine.spark.stored import footer_bytes
from millpond.engine.spark.types import to_cast
from millpond.plan.types import LONG, TIMESTAMP, TIMESTAMP_NTZ, Decimal, Field, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import Column

    from millpond.engine.spark.context import Context
    from millpond.plan.types import DataType

_THREADS = 16
_MOMENTS = (TIMESTAMP, TIMESTAMP_NTZ)


def split_by_nanos(paths: list[str], columns: Struct) -> Iterator[tuple[Struct, list[str]]]:
    """Neighbouring files, with the types to read their columns by: `long` for nanoseconds."""
    if not _has_moments(columns) or _held(paths[0], columns) == columns:
        yield columns, paths
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        held = pool.map(lambda path: _held(path, columns), paths)
        pairs = list(zip(held, paths, strict=True))
    for struct, group in groupby(pairs, key=lambda pair: pair[0]):
        yield struct, [path for _, path in group]


def in_micros(column: Column, held: DataType, wanted: DataType, context: Context) -> Column:
    """What was read as one type as another that differs by nanoseconds alone."""
    f = context.functions
    if held == wanted:
        return column
    made: Column
    if isinstance(held, Struct) and isinstance(wanted, Struct):
        members = (
            in_micros(column.getField(h.name), h.type, w.type, context).alias(h.name)
            for h, w in zip(held, wanted, strict=True)
        )
        made = f.when(column.isNotNull(), f.struct(*members))
    elif isinstance(held, List) and isinstance(wanted, List):
        element = (held.element, wanted.element)
        made = each(context.api, "transform", column, lambda x: in_micros(x, *element, context))
    elif isinstance(held, Map) and isinstance(wanted, Map):
        value = (held.value, wanted.value)
        made = each(
            context.api, "transform_values", column, lambda _, x: in_micros(x, *value, context)
        )
    else:
        thousand = f.lit(1000)
        towards_zero = f.call_function("div", column, thousand)
        below = f.when((column < 0) & (column % thousand != 0), f.lit(1)).otherwise(f.lit(0))
        made = _moment(towards_zero - below, wanted, context)
    return made


def _moment(micros: Column, wanted: DataType, context: Context) -> Column:
    """Microseconds as a moment, or as a time without a zone, whatever the session's zone is."""
    f = context.functions
    if wanted != TIMESTAMP_NTZ:
        moment: Column = f.timestamp_micros(micros)
        return moment
    whole = to_cast(Decimal(20, 0))
    seconds = (micros.cast(whole) / f.lit(1_000_000).cast(whole)).cast(to_cast(Decimal(18, 6)))
    epoch: Column = f.lit("1970-01-01 00:00:00").cast(to_cast(TIMESTAMP_NTZ))
    local: Column = epoch + f.make_dt_interval(secs=seconds)
    return local


def _has_moments(type_: DataType) -> bool:
    if isinstance(type_, Struct):
        return any(_has_moments(field.type) for field in type_)
    if isinstance(type_, List):
        return _has_moments(type_.element)
    return _has_moments(type_.value) if isinstance(type_, Map) else type_ in _MOMENTS


def _held(path: str, columns: Struct) -> Struct:
    """The columns with the types that a file holds, as far as nanoseconds go."""
    import pyarrow as pa

    schema = _schema(path)
    if schema is None:
        return columns
    found = _held_type(columns, pa.struct(list(schema)))
    assert isinstance(found, Struct)
    return found


def _schema(path: str) -> pa.Schema | None:
    """The columns of a file; none of one that can't be read: Spark says why."""
    try:
        found = Path(path.removeprefix("file:")).stat()
    except (OSError, ValueError):  # it is not here
        return _read_schema(path)
    return _known_schema(path, (found.st_mtime_ns, found.st_size, found.st_ino))


@lru_cache(maxsize=256)
def _known_schema(path: str, state: tuple[int, ...]) -> pa.Schema | None:
    """The same of a file in this state: to read a footer takes longer than to make a DataFrame."""
    del state
    return _read_schema(path)


def _read_schema(path: str) -> pa.Schema | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # What is stored in 96 bits Spark reads as it is.
        buffer = pa.BufferReader(footer_bytes(path))
        return pq.ParquetFile(buffer, coerce_int96_timestamp_unit="us").schema_arrow
    except (OSError, pa.ArrowException, UnicodeDecodeError, MillpondError):
        return None


def _held_type(wanted: DataType, type_: pa.DataType) -> DataType:
    import pyarrow.types as at

    if isinstance(wanted, Struct) and at.is_struct(type_):
        fields = []
        for field in wanted:
            place = type_.get_field_index(field.name)
            kind = field.type if place < 0 else _held_type(field.type, type_.field(place).type)
            fields.append(Field(field.name, kind, field.nullable, field.metadata))
        return Struct(tuple(fields))
    if isinstance(wanted, List) and (at.is_list(type_) or at.is_large_list(type_)):
        return List(_held_type(wanted.element, type_.value_type), wanted.contains_null)
    if isinstance(wanted, Map) and at.is_map(type_):
        return Map(wanted.key, _held_type(wanted.value, type_.item_type), wanted.contains_null)
    is_nanos = wanted in _MOMENTS and at.is_timestamp(type_) and type_.unit == "ns"
    return LONG if is_nanos else wanted
