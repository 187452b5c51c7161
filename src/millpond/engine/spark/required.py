"""Columns that are never null: a file that lacks one is an error that names both.

Spark's reader gives nulls for what a file lacks, so rows tell. A row group that statistics rule out
is not read, and then nothing is missing.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from millpond.engine.spark.api import balanced
from millpond.engine.spark.faults import PATH, fault

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millpond.engine.spark.context import Context


def are_there(names: list[str], path: str, context: Context) -> Column:
    """A condition that holds for every row, or fails; `path` is the column with the file's path."""
    f = context.functions

    def is_there(name: str) -> Column:
        message = f.lit(f"column {name} of {PATH} is missing or null, and it never should be")
        failed = fault(
            context,
            context.column(path),
            message,
            hint="correct the schema of the scan: the column may be null",
        )
        column = context.column(name)
        found: Column = column.isNotNull() | failed.cast("boolean")
        return found

    return balanced([is_there(name) for name in names], operator.and_)
