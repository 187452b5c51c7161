"""CSV files: columns are found by the names in each file's header, values by the rules of casts."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from millpond.base.errors import SourceError
from millpond.engine.spark.expressions.casts import cast
from millpond.engine.spark.readers import metadata_columns, reader
from millpond.engine.spark.rows import union_all
from millpond.engine.spark.types import to_spark, to_spark_schema
from millpond.plan.types import NULL, STRING, Field, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.readers import Reading
    from millpond.plan.sources import CsvOptions

_HEADER_BYTES = 1 << 20
# What stands for an unquoted empty field; no field says so. By default a quoted one is null, too.
_UNQUOTED_EMPTY = "\x00unquoted empty\x00"


def read_csv(
    reading: Reading, paths: list[str], context: Context, metadata: Mapping[str, str]
) -> DataFrame:
    """The rows of these files; neighbours with the same header are one scan."""
    members: list[tuple[tuple[str, ...], list[str]]] = []
    for path in paths:
        names = _header(path, reading.csv) if reading.csv.has_header else reading.columns.names
        if members and members[-1][0] == names:
            members[-1][1].append(path)
        else:
            members.append((names, [path]))
    return union_all([_read(reading, names, group, context, metadata) for names, group in members])


def _read(
    reading: Reading,
    names: tuple[str, ...],
    paths: list[str],
    context: Context,
    metadata: Mapping[str, str],
) -> DataFrame:
    # A header may name two columns alike; by position they stay apart.
    hidden = [context.hidden() for _ in names]
    schema = to_spark_schema(Struct(tuple(Field(name, STRING) for name in hidden)))
    quote = reading.csv.quote
    df = (
        reader(context)
        .schema(schema)
        .option("mode", "FAILFAST")
        .option("header", str(reading.csv.has_header).lower())
        .option("sep", reading.csv.delimiter)
        .option("quote", quote)
        .option("escape", quote)
        .option("multiLine", "true")
        .option("nullValue", _UNQUOTED_EMPTY)
        .option("emptyValue", "")
        .option("enforceSchema", "true")
        .csv(paths)
    )
    places = dict(zip(names, hidden, strict=True))
    values = [_value(field, places.get(field.name), context) for field in reading.columns]
    return df.select(*values, *metadata_columns(df, metadata))


def _value(field: Field, place: str | None, context: Context) -> Column:
    if place is None or field.type == NULL:
        null: Column = context.functions.lit(None)
        return null.cast(to_spark(field.type)).alias(field.name)
    column = context.column(place)
    if field.type != STRING:
        column = cast(column, STRING, field.type, on_error="error", api=context.api)
    return column.alias(field.name)


def _header(path: str, options: CsvOptions) -> tuple[str, ...]:
    """The first record of a file, read by the driver."""
    from millpond.base.store import open_store

    plain = path.removeprefix("file:")
    folder, _, name = plain.rpartition("/")
    try:
        head = open_store(folder or "/").get_range(name, 0, _HEADER_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"the header of {plain} can't be read: {error}",
            engine="spark",
            path=plain,
            hint="check that it is there and that it is CSV in UTF-8",
        ) from error
    lines = csv.reader(
        io.StringIO(head, newline=""), delimiter=options.delimiter, quotechar=options.quote
    )
    return tuple(next(lines, ()))
