"""DynamicScan: the rows that name the files are computed first, then the files are scanned.

Rows in memory, and what is computed of them alone, take no job of Spark's: the Arrow engine gives
the same rows, at once.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from millpond.base.errors import SourceError
from millpond.engine.spark.files import FileScan, SourceFile, scan_files
from millpond.engine.spark.locations import spark_path
from millpond.engine.spark.readers import Reading
from millpond.plan.run import engine_named
from millpond.plan.sources import CsvOptions, Values
from millpond.plan.tree import topological
from millpond.plan.types import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.frame import Frame
    from millpond.plan.node import Plan
    from millpond.plan.sources import DynamicScan


def compile_dynamic_scan(
    node: DynamicScan, inputs: list[Frame], context: Context, *, ordered: bool
) -> Frame:
    """Files as the input names them, in its order."""
    del inputs
    files = _files(node, context, ordered=ordered) if context.reads else []
    in_files = Struct(tuple(f for f in node.columns if f.name not in node.constants))
    reading = Reading(node.format, in_files, CsvOptions(), on_error=node.on_error)
    constants = tuple(dict.fromkeys(node.constants))
    return scan_files(FileScan(reading, node.schema, constants), files, context, ordered=ordered)


def _files(node: DynamicScan, context: Context, *, ordered: bool) -> list[SourceFile]:
    constants = tuple(dict.fromkeys(node.constants))
    files: list[SourceFile] = []
    batches = _named(node.input, context, ordered=ordered)
    with contextlib.closing(batches):  # type: ignore[type-var]
        for batch in batches:
            paths = batch.column(node.path_column).to_pylist()
            columns = [batch.column(name).to_pylist() for name in constants]
            deleted = None if node.deleted is None else batch.column(node.deleted)
            for row, path in enumerate(paths):
                rows = None
                if deleted is not None and deleted[row].is_valid and len(deleted[row]):
                    rows = deleted[row].values.to_numpy(zero_copy_only=False)
                values = tuple(column[row] for column in columns)
                files.append(SourceFile(_location(node, path, context), values, rows))
    return files


def _named(plan: Plan, context: Context, *, ordered: bool) -> Iterator[pa.RecordBatch]:
    nodes = topological(plan)
    arrow = engine_named("arrow")
    in_memory = all(node.children or isinstance(node, Values) for node in nodes)
    if in_memory and all(node.kind in arrow.capabilities.nodes for node in nodes):
        return arrow.execute(plan)
    return context.run(plan, ordered)


def _location(node: DynamicScan, path: str | None, context: Context) -> str:
    if path is None:
        raise SourceError(
            f"{node.path_column!r} is null where it should name a file",
            engine="spark",
            path="",
            hint=f"filter the input by {node.path_column} is not null",
        )
    return spark_path(path, context, may_be_empty=node.format != "parquet")
