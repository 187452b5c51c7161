"""Files of one format as a frame: in order or not, with constants and deleted rows.

Where nobody needs the order, files are one scan, with constants as partition columns; or a union of
few scans, with constants as literals. In order, few files are a union of one scan each. Otherwise,
files are one scan, with what is known of each as partition columns of its own, or joined with it.
A row's position costs a tenth of the scan and a join half of it, so that files without deleted rows
stay out of that where they can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.engine.spark.bytesfile import scan_bytes
from millpond.engine.spark.expressions.literals import literal
from millpond.engine.spark.file_columns import scan_with_file_columns
from millpond.engine.spark.file_table import join_file_table
from millpond.engine.spark.frame import Frame
from millpond.engine.spark.partitions import partitions_of
from millpond.engine.spark.rows import union_all
from millpond.engine.spark.types import to_spark_schema
from millpond.plan.literals import literal as bound_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.partitions import Partitions
    from millpond.engine.spark.readers import Reading
    from millpond.plan.types import Struct

_ORDERED_UNION = 32
_CONSTANTS_UNION = 16


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file for Spark, what goes with each of its rows, and the positions to leave out."""

    path: str
    constants: tuple[Any, ...] = ()
    deleted: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class FileScan:
    """What is read of the files: all columns in order, which of them are constants, and how."""

    reading: Reading
    columns: Struct
    constants: tuple[str, ...] = ()


def scan_files(
    scan: FileScan, files: list[SourceFile], context: Context, *, ordered: bool
) -> Frame:
    """The rows of the files."""
    context.files += len(files)
    if not files:
        empty = context.session.createDataFrame([], to_spark_schema(scan.columns))
        return Frame(empty, scan.columns, natural=True)
    if scan.reading.format == "bytes":
        return scan_bytes(scan, files, context, ordered=ordered)
    if ordered:
        return _scan(scan, files, context, ordered=True)
    parts = (
        [file for file in files if file.deleted is None],
        [file for file in files if file.deleted is not None],
    )
    frames = [_scan(scan, part, context, ordered=False) for part in parts if part]
    return Frame(union_all([frame.df for frame in frames]), scan.columns)


def _scan(scan: FileScan, files: list[SourceFile], context: Context, *, ordered: bool) -> Frame:
    groups = _groups(files, ordered=ordered)
    is_one = groups is not None and len(groups) == 1
    is_whole = files[0].deleted is None
    if not ordered and not is_one and is_whole and scan.reading.format == "parquet":
        constants = [scan.columns.field(name) for name in scan.constants]
        partitions = partitions_of(files, constants, context)
        if partitions is not None:
            return Frame(_read_partitions(scan, files, partitions, context), scan.columns)
    if groups is None:
        found = scan_with_file_columns(scan, files, context, ordered=ordered)
        return found or join_file_table(scan, files, context, ordered=ordered)
    members = [_read_group(scan, group, context) for group in groups]
    return Frame(union_all(members), scan.columns, natural=ordered)


def _read_partitions(
    scan: FileScan, files: list[SourceFile], partitions: Partitions, context: Context
) -> DataFrame:
    df = scan.reading.read([file.path for file in files], context, partitions=partitions)
    hidden = dict(zip(scan.constants, partitions.columns.names, strict=True))
    names = [(hidden.get(name, name), name) for name in scan.columns.names]
    return df.select(*(context.column(stored).alias(name) for stored, name in names))


def _groups(files: list[SourceFile], *, ordered: bool) -> list[list[SourceFile]] | None:
    """Files that one scan reads; None when there would be too many scans, or literals won't do."""
    if any(file.deleted is not None for file in files):
        return None
    if any(isinstance(value, dict | list) for file in files for value in file.constants):
        return None
    if ordered:
        return [[file] for file in files] if len(files) <= _ORDERED_UNION else None
    groups: dict[str, list[SourceFile]] = {}
    for file in files:
        groups.setdefault(repr(file.constants), []).append(file)
    return list(groups.values()) if len(groups) <= _CONSTANTS_UNION else None


def _read_group(scan: FileScan, group: list[SourceFile], context: Context) -> DataFrame:
    df = scan.reading.read([file.path for file in group], context)
    if not scan.constants:
        return df
    known = dict(zip(scan.constants, group[0].constants, strict=True))
    columns = []
    for field in scan.columns:
        if field.name in known:
            bound = bound_literal(known[field.name], field.type)
            column = literal(bound.value, bound.type, context.api).alias(field.name)
        else:
            column = context.column(field.name)
        columns.append(column)
    return df.select(*columns)
