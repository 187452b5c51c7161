"""Many files as one scan, joined with a broadcast table of what is known about each file.

A row whose file is not in it is an error, since a path that is spelled differently must not make
rows vanish. It takes half as long again as the scan, and `file_columns.py` does without; the join
is for what that can't do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.engine.spark.deleted import is_set, word_number, words_of
from millpond.engine.spark.frame import Frame
from millpond.engine.spark.locations import file_uri
from millpond.engine.spark.types import to_spark_schema
from millpond.plan.arrow import to_arrow
from millpond.plan.literals import literal
from millpond.plan.types import INTEGER, LONG, STRING, DataType, Field, List, Struct

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.files import FileScan, SourceFile


def join_file_table(
    scan: FileScan, files: list[SourceFile], context: Context, *, ordered: bool
) -> Frame:
    """The rows of the files with their constants, without their deleted rows."""
    names = Names(context)
    paths = list(dict.fromkeys(file.path for file in files))
    has_deleted = any(file.deleted is not None for file in files)
    in_file = _position_in_file(scan, context) if ordered else {}
    facts = {names.key: "file_path", **{k: v for k, v in in_file.items() if v is not None}}
    if has_deleted:
        facts[names.row] = "row_index"
    df = scan.reading.read(paths, context, metadata=facts)
    for name, fact in in_file.items():
        if fact is None:
            df = df.withColumn(name, context.functions.monotonically_increasing_id())
    table, schema = file_table(scan, files, names)
    known = context.functions.broadcast(_table_frame(table, schema, context))
    joined = df.join(known, names.key_condition(context), "left").filter(_known(names, context))
    if has_deleted:
        joined = joined.filter(_is_live(names, context))
    keys = (names.ordinal, *in_file) if ordered else ()
    columns = [
        context.column(names.constant(field.name)).alias(field.name)
        if field.name in scan.constants
        else context.column(field.name)
        for field in scan.columns
    ]
    return Frame(joined.select(*columns, *context.columns(keys)), scan.columns, keys=keys)


class Names:
    """Hidden names for the columns that the join needs."""

    def __init__(self, context: Context) -> None:
        self.key, self.known_key, self.ordinal, self.row = (context.hidden() for _ in range(4))
        self.words, self.content, self._constants = (context.hidden() for _ in range(3))

    def constant(self, name: str) -> str:
        """The table's column for a constant."""
        return f"{self._constants} {name}"

    def key_condition(self, context: Context) -> Column:
        """Rows find their file."""
        return context.column(self.key) == context.column(self.known_key)


def _position_in_file(scan: FileScan, context: Context) -> dict[str, str | None]:
    """Names for what orders rows in their file, and Spark's facts for them; None: an ordinal."""
    if scan.reading.format == "parquet":
        return {context.hidden(): "row_index"}
    return {context.hidden(): "file_block_start", context.hidden(): None}


def file_table(scan: FileScan, files: list[SourceFile], names: Names) -> tuple[pa.Table, Struct]:
    """A row for each file: its path, its number, its constants and its deleted rows."""
    import pyarrow as pa

    fields = [Field(names.known_key, STRING), Field(names.ordinal, INTEGER)]
    columns: list[Any] = [[file_uri(file.path) for file in files], range(len(files))]
    for position, name in enumerate(scan.constants):
        fields.append(Field(names.constant(name), scan.columns.field(name).type))
        type_ = scan.columns.field(name).type
        columns.append([_constant(file.constants[position], type_) for file in files])
    if any(file.deleted is not None for file in files):
        fields.append(Field(names.words, List(LONG)))
        columns.append([None if f.deleted is None else words_of(f.deleted, f.path) for f in files])
    schema = Struct(tuple(fields))
    arrays = [
        pa.array(values, to_arrow(field.type))
        for field, values in zip(schema, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=list(schema.names)), schema


def _constant(value: Any, type_: DataType) -> Any:
    # Nested values come from Arrow and have their type already.
    return value if isinstance(value, dict | list) else literal(value, type_).value


def _table_frame(table: pa.Table, schema: Struct, context: Context) -> DataFrame:
    return context.session.createDataFrame(table, to_spark_schema(schema))


def _known(names: Names, context: Context) -> Column:
    f = context.functions
    text = f.concat(
        f.lit("a row came from a file that is not in the scan: "), context.column(names.key)
    )
    unknown = context.column(names.ordinal).isNull()
    found: Column = f.when(unknown, f.raise_error(text).cast("boolean")).otherwise(f.lit(True))
    return found


def _is_live(names: Names, context: Context) -> Column:
    f = context.functions
    row = context.column(names.row)
    word = f.get(context.column(names.words), word_number(row, context))
    live: Column = ~f.coalesce(is_set(word, row, context), f.lit(False))
    return live
