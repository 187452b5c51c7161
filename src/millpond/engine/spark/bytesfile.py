"""Files as bytes: each is one row with its content, or the part that its constants name.

Spark's reader gives no row for an empty file, so rows come from the table of files, and contents
are looked up. A file that is not there is an error when the reader is given its path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.base.errors import SourceError, StoreError
from millpond.base.store.ranges import check_range
from millpond.engine.spark.file_table import Names, file_table
from millpond.engine.spark.frame import Frame
from millpond.engine.spark.locations import as_names
from millpond.engine.spark.readers import metadata_columns, reader
from millpond.engine.spark.values import table_frame
from millpond.plan.sources import CONTENT, RANGE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.files import FileScan, SourceFile

_MOST_BYTES = (1 << 31) - 2
"""Spark holds no larger content, so that no range needs larger numbers."""


def scan_bytes(
    scan: FileScan, files: list[SourceFile], context: Context, *, ordered: bool
) -> Frame:
    """A row for each file."""
    _check_ranges(scan, files)
    names = Names(context)
    table, schema = file_table(scan, files, names)
    df = table_frame(table, schema, context)
    if CONTENT in scan.columns:
        contents = _contents(files, names, context)
        df = df.join(contents, names.key_condition(context), "left")
    columns = [
        context.column(names.constant(field.name)).alias(field.name)
        if field.name in scan.constants
        else _part(scan, names, context).alias(field.name)
        for field in scan.columns
    ]
    keys = (names.ordinal,) if ordered else ()
    return Frame(df.select(*columns, *context.columns(keys)), scan.columns, keys=keys)


def _contents(files: list[SourceFile], names: Names, context: Context) -> DataFrame:
    paths = list(dict.fromkeys(file.path for file in files))
    df = reader(context).format("binaryFile").load(as_names(paths))
    content = context.column(CONTENT).alias(names.content)
    return df.select(content, *metadata_columns(df, {names.key: "file_path"}))


def _part(scan: FileScan, names: Names, context: Context) -> Column:
    f = context.functions
    content: Column = f.coalesce(context.column(names.content), f.lit(b""))
    known = [name for name in RANGE if name in scan.constants]
    limits = {name: context.column(names.constant(name)) for name in known}
    if not limits:
        return content
    none = f.lit(None).cast("bigint")
    offset, length = (limits.get(name, none) for name in RANGE)
    start = f.least(f.coalesce(offset, f.lit(0)), f.lit(_MOST_BYTES)) + f.lit(1)
    count = f.least(f.coalesce(length, f.lit(_MOST_BYTES)), f.lit(_MOST_BYTES))
    part: Column = f.substring(content, start.cast("int"), count.cast("int"))
    return part


def _check_ranges(scan: FileScan, files: list[SourceFile]) -> None:
    limits = [scan.constants.index(name) if name in scan.constants else None for name in RANGE]

    def given(file: SourceFile, at: int | None) -> Any:
        return 0 if at is None or file.constants[at] is None else file.constants[at]

    for file in files if any(at is not None for at in limits) else ():
        try:
            check_range(file.path, *(given(file, at) for at in limits))
        except StoreError as error:
            raise SourceError(
                f"{file.path} can't be read: {error.message}", engine="spark", path=file.path
            ) from error
