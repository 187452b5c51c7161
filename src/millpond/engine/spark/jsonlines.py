"""JSON files: one value a line, each line read as `parse_json` reads text.

A line that is not an object is an error that names the file; a blank line is no row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.looks import DECLARE
from millpond.engine.spark.expressions.json import MISFIT, VALUE, read_json, tell_json
from millpond.engine.spark.faults import PATH, fault
from millpond.engine.spark.locations import as_names
from millpond.engine.spark.readers import metadata_columns, reader
from millpond.engine.spark.strictjson import misfit_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.readers import Reading

_AROUND = " \t\r\n\ufeff"
_SHOWN = 60
_DAMAGED = "the file is damaged, or was written by something that breaks its rules"


def read_json_lines(
    reading: Reading, paths: list[str], context: Context, metadata: Mapping[str, str]
) -> DataFrame:
    """The rows of these files."""
    f = context.functions
    line, path, parsed = context.hidden(), context.hidden(), context.hidden()
    df = reader(context).option("lineSep", "\n").text(as_names(paths))
    text = f.btrim(context.column("value"), f.lit(_AROUND))
    lines = df.select(
        text.alias(line),
        *metadata_columns(df, {path: "file_path"}),
        *metadata_columns(df, metadata),
    )
    lines = lines.filter(context.column(line) != f.lit(""))
    carried = context.columns(metadata)
    if not reading.columns.fields:
        return lines.select(*carried)
    whole = context.column(line)
    shown = f.concat(
        f.substring(whole, 1, _SHOWN), f.when(f.length(whole) > _SHOWN, "…").otherwise("")
    )
    refused = fault(
        context,
        context.column(path),
        f.concat(f.lit(f"a line of {PATH} is not a JSON object: "), shown),
        hint="one JSON object per line is expected, each whole on its line",
    )
    # What is not deterministic Spark computes once, here: a filter above would be moved below this,
    # with all of it written out for each column that it looks at, and be asked about blank lines.
    failed = f.when(f.spark_partition_id() >= 0, refused)
    names = *context.columns((line, path)), *carried
    if reading.on_error == "error":
        told = context.hidden()
        both = tell_json(whole, reading.columns, context.api)
        lines = lines.select(f.when(f.spark_partition_id() >= 0, both).alias(told), *names)
        value = context.column(told).getField(VALUE)
        misfit = context.column(told).getField(MISFIT)
        rows = lines.select(f.coalesce(value, failed).alias(parsed), misfit.alias(told), *names)
        rows = _checked(rows, (parsed, told, line, path), shown, reading, context)
    else:
        value = f.coalesce(read_json(whole, reading.columns, context.api), failed)
        rows = lines.select(value.alias(parsed), *names)
    members = [context.column(parsed).getField(n).alias(n) for n in reading.columns.names]
    return rows.select(*members, *carried)


def _checked(
    rows: DataFrame,
    names: tuple[str, str, str, str],
    shown: Column,
    reading: Reading,
    context: Context,
) -> DataFrame:
    """Return the rows, or an error for a line that does not fit its columns."""
    f = context.functions
    parsed, told, line, path = names
    value, problem = context.column(parsed), context.hidden()
    refused = fault(
        context,
        context.column(path),
        f.concat(
            f.lit(f"a line of {PATH} does not fit what is read of it: "),
            context.column(problem),
            f.lit(" in "),
            shown,
        ),
        hint=_DAMAGED if reading.strict else DECLARE,
    )
    misfit = misfit_of(
        context.column(line),
        value,
        context.column(told),
        reading.columns,
        context.api,
        exactly=reading.strict,
    )
    rows = rows.withColumn(problem, f.when(f.spark_partition_id() >= 0, misfit))
    checked = f.when(
        context.column(problem).isNotNull(), refused.cast(rows.schema[parsed].dataType)
    ).otherwise(value)
    others = [context.column(name) for name in rows.columns if name not in (parsed, problem, told)]
    return rows.select(checked.alias(parsed), *others)
