"""CSV files: columns are found by the names in each file's header, values by the rules of casts.

The driver reads each file's first record. Text that does not fit its column is an error that names
the file and the column, or null where the scan says so; text that is not UTF-8 is an error. Where
types were guessed, only what `engine/looks.py` describes fits.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

from millpond.base.errors import SourceError
from millpond.engine.csvhead import CsvHead, read_head
from millpond.engine.looks import DECLARE, EXACT, EXACT_PLAIN, GUESSED_LATE, NOT_ZERO, look_of
from millpond.engine.spark.expressions.casts import cast
from millpond.engine.spark.faults import PATH, fault
from millpond.engine.spark.locations import as_names
from millpond.engine.spark.readers import metadata_columns, reader
from millpond.engine.spark.rows import union_all
from millpond.engine.spark.types import to_cast, to_spark_schema
from millpond.plan.types import DOUBLE, NULL, STRING, Field, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.readers import Reading
    from millpond.plan.sources import CsvOptions
    from millpond.plan.types import DataType

_HEAD_BYTES = 1 << 20
_COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
# What stands for an unquoted empty field; no field says so. By default a quoted one is null, too.
_UNQUOTED_EMPTY = "\x00unquoted empty\x00"


def read_csv(
    reading: Reading, paths: list[str], context: Context, metadata: Mapping[str, str]
) -> DataFrame:
    """The rows of these files; neighbours with the same header are one scan."""
    members: list[tuple[CsvHead, list[str]]] = []
    for path in paths:
        head = _head(path, reading.csv)
        if reading.csv.has_header:
            head.check(reading.columns.names, path=path.removeprefix("file:"), engine="spark")
        else:
            head = replace(head, names=reading.columns.names)
        if members and members[-1][0] == head:
            members[-1][1].append(path)
        else:
            members.append((head, [path]))
    return union_all([_read(reading, head, group, context, metadata) for head, group in members])


def _read(
    reading: Reading,
    head: CsvHead,
    paths: list[str],
    context: Context,
    metadata: Mapping[str, str],
) -> DataFrame:
    # A header may name two columns alike; by position they stay apart.
    hidden = [context.hidden() for _ in head.names]
    schema = to_spark_schema(Struct(tuple(Field(name, STRING) for name in hidden)))
    quote = reading.csv.quote
    df = (
        reader(context)
        .schema(schema)
        .option("mode", "FAILFAST")
        .option("header", str(reading.csv.has_header).lower())
        # A backslash begins a name for another character, unless it stands twice.
        .option("sep", reading.csv.delimiter.replace("\\", "\\\\"))
        .option("quote", quote)
        .option("escape", quote)
        .option("multiLine", "true")
        # Told what ends lines, Spark leaves it alone inside quotes.
        .option("lineSep", head.line_end)
        .option("nullValue", _UNQUOTED_EMPTY)
        .option("emptyValue", "")
        .option("enforceSchema", "true")
        .csv(as_names(paths))
    )
    path = context.hidden()
    facts = {path: "file_path", **metadata}
    df = df.select(*context.columns(hidden), *metadata_columns(df, facts))
    places = dict(zip(head.names, hidden, strict=True))
    values = [
        _value(field, places.get(field.name), path, reading, context) for field in reading.columns
    ]
    return df.select(*values, *context.columns(metadata))


def _value(
    field: Field, place: str | None, path: str, reading: Reading, context: Context
) -> Column:
    f = context.functions
    if place is None or field.type == NULL:
        null: Column = context.functions.lit(None)
        return null.cast(to_cast(field.type)).alias(field.name)
    text = context.column(place)
    if field.type == STRING:
        # Spark puts this character where bytes are no UTF-8; a file has no use for it itself.
        is_bad = f.contains(text, f.lit("\ufffd"))
        bad = f"column {field.name} of {PATH} holds what is not UTF-8: "
        hint = "convert the file to UTF-8, or leave the column out"
        value = f.when(is_bad, _refused((bad, ""), text, path, hint, context)).otherwise(text)
    else:
        value = cast(text, STRING, field.type, on_error="null", api=context.api)
        if reading.strict:
            value = f.when(_is_alike(text, value, field.type, context), value)
        if reading.on_error == "error":
            around = f"{PATH}: column '{field.name}' holds ", f", which is not of type {field.type}"
            hint = GUESSED_LATE if reading.strict else DECLARE
            refused = _refused(around, text, path, hint, context)
            value = f.coalesce(value, f.when(text.isNotNull(), refused))
    named: Column = value.alias(field.name)
    return named


def _is_alike(text: Column, value: Column, type_: DataType, context: Context) -> Column:
    """Whether a text looks like a value of a guessed type, and the value is what it says."""
    f = context.functions
    look = look_of(type_)
    assert look is not None
    alike: Column = text.rlike(look)
    if type_ != DOUBLE:
        return alike
    size = f.abs(value)
    infinite = f.lit(float("inf"))
    is_exact = (size < float(EXACT)) | (text.rlike(EXACT_PLAIN) & (size < infinite))
    exact: Column = alike & is_exact & ((size > 0.0) | ~text.rlike(NOT_ZERO))
    return exact


def _refused(
    around: tuple[str, str], text: Column, path: str, hint: str, context: Context
) -> Column:
    f = context.functions
    before, behind = around
    shown = f.concat(f.lit(f"{before}'"), text, f.lit(f"'{behind}"))
    return fault(context, context.column(path), shown, hint=hint)


def _head(path: str, options: CsvOptions) -> CsvHead:
    """The first record of a file, read by the driver."""
    import pyarrow as pa

    from millpond.base.store import open_store

    plain = path.removeprefix("file:")
    folder, _, name = plain.rpartition("/")
    try:
        data = open_store(folder or "/").get_range(name, 0, _HEAD_BYTES)
        for suffix, codec in _COMPRESSION.items():
            if name.endswith(suffix):
                return read_head(pa.CompressedInputStream(io.BytesIO(data), codec), options)
        return read_head(io.BytesIO(data), options)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"the header of {plain} can't be read: {error}",
            engine="spark",
            path=plain,
            hint="check that it is there and that it is CSV in UTF-8",
        ) from error
