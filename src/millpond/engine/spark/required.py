"""Columns that are never null: a file that lacks one is an error that names both.

Spark's reader gives nulls for what a file lacks, so rows tell. They do not tell of which file they
are, since that would cost a fifth of a scan: the footers are asked once something is missing. A row
group that statistics rule out is not read, and then nothing is missing.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from millpond.base.errors import MillpondError, SourceError
from millpond.engine.spark.api import balanced
from millpond.engine.spark.faults import fault
from millpond.engine.spark.stored import lacking

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millpond.engine.spark.context import Context
    from millpond.plan.types import Struct

_HINT = "correct the schema of the scan: the column may be null"


def are_there(required: Struct, paths: list[str], context: Context) -> Column:
    """A condition that holds for every row of these files, or fails."""
    context.required.append((paths, required))
    f = context.functions

    def is_there(name: str) -> Column:
        message = f.lit(f"column {name} of some file is missing or null, and it never should be")
        failed = fault(context, f.lit(""), message, hint=_HINT)
        found: Column = context.column(name).isNotNull() | failed.cast("boolean")
        return found

    return balanced([is_there(name) for name in required.names], operator.and_)


def with_file(error: MillpondError, context: Context) -> MillpondError:
    """The error with the file that lacks a column, if that is what it tells."""
    if not isinstance(error, SourceError) or error.path or error.hint != _HINT:
        return error
    for paths, required in context.required:
        for path in paths:
            name = lacking(path, required)
            if name is not None:
                plain = path.removeprefix("file:")
                message = f"column {name} of {plain} is missing, and it never should be null"
                return SourceError(message, engine="spark", path=plain, hint=_HINT)
    return error
