"""CSV: columns by the header's names, or by position; text becomes values as casts say.

An unquoted empty field is null, a quoted one is empty text. Text that does not fit its column, or
that is not UTF-8, is an error that names the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millpond.base.errors import EvaluationError, SourceError
from millpond.engine.arrow.eval import evaluate
from millpond.engine.arrow.source.batch import batch_of
from millpond.engine.arrow.source.entry import repeated
from millpond.engine.arrow.source.files import ENGINE, unfit, unreadable
from millpond.engine.arrow.source.stream import open_stream, unpacked
from millpond.engine.csvhead import CsvHead, read_head
from millpond.plan.bound import BoundCast, BoundPath
from millpond.plan.paths import Name
from millpond.plan.sources import CsvOptions
from millpond.plan.types import STRING, Field, Struct, is_orderable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.source.entry import Entry
    from millpond.engine.arrow.source.spec import ScanSpec

_BLOCKS = (1 << 20, 32 << 20, 1 << 30)
"""Bytes that are read at a time. A row that is longer makes pyarrow give up: then the file is read
anew, in larger blocks."""
_STRADDLES = "straddling object"


def read_csv(entry: Entry, spec: ScanSpec, context: Context) -> Iterator[pa.RecordBatch]:
    """The rows of a file, block by block."""
    wanted = Struct(tuple(f for f in spec.columns if f.name not in entry.constants))
    for field in wanted:
        if not is_orderable(field.type):
            raise unfit(entry.path, field.name, f"can't be a {field.type}: CSV holds plain values")
    options = spec.csv or CsvOptions()
    written = [f.name for f in spec.columns if f.name not in entry.constants]
    names = {
        field.name: field.name if options.has_header else f"f{written.index(field.name)}"
        for field in wanted
    }
    for texts in _texts(entry.path, options, list(names.values()), context):
        context.counters.add("batches_decoded")
        context.counters.add("rows_decoded", texts.num_rows)
        arrays = []
        for field in spec.columns:
            if field.name in entry.constants:
                value = entry.constants[field.name]
                arrays.append(repeated(value, field.type, texts.num_rows))
            else:
                arrays.append(_values(entry.path, texts.column(names[field.name]), field))
        yield batch_of(arrays, spec.columns, texts.num_rows)


def _values(path: str, texts: pa.Array, field: Field) -> pa.Array:
    if field.type == STRING:
        return texts
    cast = BoundCast(BoundPath((Name("text"),), STRING), field.type)
    try:
        return evaluate(cast, pa.record_batch([texts], ["text"]))
    except EvaluationError as error:
        raise unfit(path, field.name, f"does not hold a {field.type}: {error.message}") from error


def _texts(
    path: str, options: CsvOptions, names: list[str], context: Context
) -> Iterator[pa.RecordBatch]:
    """The columns of these names as text; those that the file lacks are null.

    Where none is wanted, any one is read as it is: not to name one would be to ask for all.
    """
    first = _checked_header(path, options, names, context) if options.has_header else ("f0",)
    types = dict.fromkeys(names, pa.string()) or dict.fromkeys(first[:1], pa.binary())
    given = 0
    for size in _BLOCKS:
        passed = 0
        try:
            for batch in _blocks(path, options, types, size, context):
                known = max(given - passed, 0)
                passed += batch.num_rows
                if passed > given:
                    given = passed
                    yield batch.slice(known) if known else batch
        except (OSError, pa.ArrowException) as error:
            if _STRADDLES not in str(error) or size == _BLOCKS[-1]:
                raise no_csv(path, error) from error
        else:
            return


def _blocks(
    path: str, options: CsvOptions, types: dict[str, pa.DataType], size: int, context: Context
) -> Iterator[pa.RecordBatch]:
    """The rows of so many bytes at a time."""
    file, stream = open_stream(path, context)
    try:
        context.counters.add("bytes_read", file.size())
        reader = _open(stream, options, types, size)
        while reader is not None and (batch := next(reader, None)) is not None:
            if batch.num_rows:
                yield batch
    finally:
        context.files.release(file)


def _checked_header(
    path: str, options: CsvOptions, names: list[str], context: Context
) -> tuple[str, ...]:
    file = context.files.open(path)
    try:
        head = head_of(path, unpacked(path, file), options)
    finally:
        context.files.release(file)
    head.check(names, path=path, engine=ENGINE)
    return head.names


def head_of(path: str, stream: pa.NativeFile, options: CsvOptions) -> CsvHead:
    """The first record of a file."""
    try:
        return read_head(stream, options)
    except (OSError, ValueError) as error:
        raise no_csv(path, error) from error


def no_csv(path: str, error: Exception) -> SourceError:
    """The error for a file that can't be read as CSV."""
    return unreadable(
        path,
        error,
        hint="check that it is CSV in UTF-8, every row with as many fields as the first",
    )


def _open(
    stream: pa.NativeFile, options: CsvOptions, types: dict[str, pa.DataType], size: int
) -> Any:
    """A reader; None of an empty file."""
    import pyarrow.csv as pc

    try:
        return pc.open_csv(
            stream,
            read_options=pc.ReadOptions(
                use_threads=False,
                block_size=size,
                autogenerate_column_names=not options.has_header,
            ),
            parse_options=pc.ParseOptions(
                delimiter=options.delimiter, quote_char=options.quote, newlines_in_values=True
            ),
            convert_options=pc.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                include_missing_columns=True,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV file" in str(error):
            return None
        raise
