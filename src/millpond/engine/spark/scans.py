"""Scan: files that the plan names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.spark.commits import check_commits
from millpond.engine.spark.files import FileScan, SourceFile, scan_files
from millpond.engine.spark.locations import spark_path
from millpond.engine.spark.readers import Reading
from millpond.plan.sources import CsvOptions

if TYPE_CHECKING:
    from millpond.engine.spark.context import Context
    from millpond.engine.spark.frame import Frame
    from millpond.plan.sources import Scan


def compile_scan(node: Scan, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """Native scans of the files."""
    del inputs
    may_be_empty = node.format != "parquet"
    files = [
        SourceFile(spark_path(file.path, context, may_be_empty=may_be_empty), file.constants)
        for file in node.files
    ]
    if node.format == "json" and context.reads:
        check_commits([file.path for file in node.files])
    reading = Reading(
        node.format, node.file_columns, node.csv or CsvOptions(), node.strict, node.on_error
    )
    scan = FileScan(reading, node.schema, node.constants)
    return scan_files(scan, files, context, ordered=ordered)
