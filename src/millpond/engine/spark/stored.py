"""Columns that Parquet files hold under other names: by name and renamed after, or by field id.

Spark finds columns by id when its schema has ids, but refuses a file without any, or, if told to
ignore that, gives nulls without a word. So the driver looks into the footers of scans that ask for
ids, about a millisecond each and many at once, and files without ids are read by name. Whoever
knows that files have the stored names anyway should ask for names alone, which costs nothing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from millpond.base.errors import MillpondError
from millpond.engine.spark.types import to_spark
from millpond.plan.stored_fields import (
    STORED_ID,
    has_stored_ids,
    is_renamed,
    logical,
    stored_id,
    stored_name,
)
from millpond.plan.types import List, Map, Struct

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql import types as st

    from millpond.engine.spark.context import Context
    from millpond.plan.types import DataType, Field

_TAIL_BYTES = 1 << 16
_ARROW_ID = b"PARQUET:field_id"
_THREADS = 16


def stored_schema(columns: Struct, *, by_id: bool) -> st.StructType:
    """The schema to read: stored names, and ids where they are given and wanted."""
    from pyspark.sql import types as st

    fields = []
    for field in columns:
        number = stored_id(field) if by_id else None
        metadata = None if number is None else {STORED_ID: number}
        type_ = _stored_type(field.type, by_id=by_id)
        name = _read_as(field, by_id=by_id)
        fields.append(st.StructField(name, type_, field.nullable, metadata))
    return st.StructType(fields)


def _read_as(field: Field, *, by_id: bool) -> str:
    """The name to read a field by.

    One that is found by its id needs a name that no file has: Spark would take the type of a
    column of that name for its own.
    """
    number = stored_id(field) if by_id else None
    return stored_name(field) if number is None else f"{STORED_ID} = {number}"


def _stored_type(type_: DataType, *, by_id: bool) -> st.DataType:
    from pyspark.sql import types as st

    if not is_renamed(type_):
        return to_spark(type_)
    if isinstance(type_, List):
        return st.ArrayType(_stored_type(type_.element, by_id=by_id), type_.contains_null)
    if isinstance(type_, Map):
        key, value = (_stored_type(part, by_id=by_id) for part in (type_.key, type_.value))
        return st.MapType(key, value, type_.contains_null)
    assert isinstance(type_, Struct)
    return stored_schema(type_, by_id=by_id)


def renamed(columns: Struct, context: Context, *, by_id: bool) -> list[Column]:
    """What was read with `stored_schema`, under the names that the plan has."""
    found = []
    for field, plain in zip(columns, logical(columns), strict=True):
        column = context.column(_read_as(field, by_id=by_id))
        if is_renamed(field.type):
            column = column.cast(to_spark(plain.type))  # member by member, in order
        found.append(column.alias(field.name))
    return found


def split_by_ids(paths: list[str], columns: Struct) -> list[tuple[bool, list[str]]]:
    """The files to read by id (True) and those to read by name."""
    if not has_stored_ids(columns):
        return [(False, paths)]
    with ThreadPoolExecutor(_THREADS) as pool:
        have = list(pool.map(_has_ids, paths))
    parts = [(kind, [p for p, h in zip(paths, have, strict=True) if h is kind]) for kind in _BOTH]
    return [part for part in parts if part[1]]


_BOTH = (True, False)


def _has_ids(path: str) -> bool:
    """Whether some field of a file has an id; of a file that can't be read Spark says why."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        fields = list(pq.read_schema(pa.BufferReader(footer_bytes(path))))
    except (OSError, pa.ArrowException, UnicodeDecodeError, MillpondError):
        return False
    while fields:
        field = fields.pop()
        if _ARROW_ID in (field.metadata or {}):
            return True
        fields += [field.type.field(i) for i in range(field.type.num_fields)]
    return False


def lacking(path: str, columns: Struct) -> str | None:
    """The first of these columns that a file lacks; of one that can't be read Spark says why."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(pa.BufferReader(footer_bytes(path)))
    except (OSError, pa.ArrowException, UnicodeDecodeError, MillpondError):
        return None
    by_id = has_stored_ids(columns) and _has_ids(path)
    held = {str((field.metadata or {}).get(_ARROW_ID, b""), "ascii") for field in schema}
    for field in columns:
        number = stored_id(field) if by_id else None
        there = stored_name(field) in schema.names if number is None else str(number) in held
        if not there:
            return field.name
    return None


def footer_bytes(path: str) -> bytes:
    """The end of a file, with all of its footer."""
    from millpond.base.store import open_store

    folder, _, name = path.removeprefix("file:").rpartition("/")
    store = open_store(folder or "/")
    size = store.head(name).size
    start = max(0, size - _TAIL_BYTES)
    tail = store.get_range(name, start, size - start)
    needed = int.from_bytes(tail[-8:-4], "little") + 8
    if needed <= len(tail) or needed > size:
        return tail
    return store.get_range(name, size - needed, needed)
