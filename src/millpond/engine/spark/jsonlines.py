"""JSON files: one value a line, each line read as `parse_json` reads text.

A line that is not an object is a row of nulls; a blank line is no row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.spark.expressions.json import parse_json
from millpond.engine.spark.readers import metadata_columns, reader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.readers import Reading

_AROUND = " \t\r\n\ufeff"


def read_json_lines(
    reading: Reading, paths: list[str], context: Context, metadata: Mapping[str, str]
) -> DataFrame:
    """The rows of these files."""
    f = context.functions
    line, parsed = context.hidden(), context.hidden()
    df = reader(context).option("lineSep", "\n").text(paths)
    text = f.btrim(context.column("value"), f.lit(_AROUND))
    lines = df.select(text.alias(line), *metadata_columns(df, metadata))
    lines = lines.filter(context.column(line) != f.lit(""))
    carried = context.columns(metadata)
    if not reading.columns.fields:
        return lines.select(*carried)
    value = parse_json(context.column(line), reading.columns, context.api)
    rows = lines.select(value.alias(parsed), *carried)
    members = [context.column(parsed).getField(n).alias(n) for n in reading.columns.names]
    return rows.select(*members, *carried)
