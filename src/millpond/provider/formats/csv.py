"""`csv`: one record a line, types guessed from the first rows.

`delimiter` (`,`; tabs for `.tsv`), `quote`, `escape`, `has_header`, `null_values` (an unquoted
empty field is null by itself), `infer_rows`: from how many rows types are guessed, 0 for all.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, Field, field_validator

from millpond.base.errors import EvaluationError
from millpond.engine.arrow.source.lent import Lent
from millpond.engine.csvhead import read_head
from millpond.plan import types as t
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.sources import CsvOptions as Dialect
from millpond.plan.sources import File, Scan
from millpond.provider.formats.format import Format, Options, Parsed
from millpond.provider.formats.guess import Guess, settled, values
from millpond.provider.formats.packed import plain_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from millpond.plan.node import Plan
    from millpond.provider.formats.format import Source

INFER_ROWS: Final = 100_000
_BLOCK: Final = 4 << 20
_HINT: Final = "check that it is CSV in UTF-8, every row with as many fields as the first"


def _list(value: object) -> object:
    return tuple(value.split(",")) if isinstance(value, str) else value


class CsvOptions(Options):
    """How a file is written."""

    delimiter: str | None = None
    quote: str = '"'
    escape: str | None = None
    has_header: bool = True
    null_values: Annotated[tuple[str, ...], BeforeValidator(_list)] = ()
    infer_rows: Annotated[int, Field(ge=0)] = INFER_ROWS

    @field_validator("delimiter", "quote", "escape")
    @classmethod
    def _one(cls, text: str | None) -> str | None:
        text = "\t" if text in ("\\t", "tab") else text
        if text is not None and (len(text) != 1 or not text.isascii()):
            raise ValueError("one character; tab is a tab, %26 is & and %2B is +")
        return text

    @property
    def dialect(self) -> Dialect:
        """What of it engines know."""
        return Dialect(self.delimiter or ",", self.quote, self.has_header)


class Csv(Format[CsvOptions]):
    """Comma-separated values."""

    options = CsvOptions
    summary: ClassVar[str] = "comma-separated values"

    def for_file(self, name: str, options: CsvOptions) -> CsvOptions:
        """Fields of `.tsv` files are parted by tabs, unless something else is said."""
        if options.delimiter is not None:
            return options
        is_tabs = plain_name(name).endswith(".tsv")
        return options.model_copy(update={"delimiter": "\t" if is_tabs else ","})

    def parse(self, source: Source, options: CsvOptions) -> Parsed:
        """The rows, in two passes: types, then values."""
        columns = _guessed(source, options)
        return Parsed(to_arrow_schema(columns), _rows(source, options, columns))

    def columns(self, source: Source, options: CsvOptions) -> t.Struct | None:
        """The columns; engines know nothing of escapes and of other words for null."""
        if options.escape is not None or options.null_values:
            return None
        return _guessed(source, options)

    def scan(self, files: list[tuple[str, int]], columns: t.Struct, options: CsvOptions) -> Plan:
        """The rows of files; each value is read as its column's type, from the text."""
        found = tuple(File(path, size) for path, size in files)
        return Scan("csv", found, settled(columns), csv=options.dialect)


def _guessed(source: Source, options: CsvOptions) -> t.Struct:
    batches = _texts(source, options)
    first = next(batches, None)
    names = _names(source, options) if first is None else tuple(first.schema.names)
    if not names:
        raise source.failed("shows no columns", hint="a CSV file begins with a line of names")
    guesses = [Guess() for _ in names]
    rows = 0
    for batch in chain([first] if first is not None else [], batches):
        left = options.infer_rows - rows if options.infer_rows else batch.num_rows
        seen = batch.slice(0, left)
        for guess, column in zip(guesses, seen.columns, strict=True):
            guess.see(column)
        rows += seen.num_rows
        if rows == options.infer_rows:
            break
    fields = (t.Field(name, guess.type) for name, guess in zip(names, guesses, strict=True))
    return t.Struct(tuple(fields))


def _rows(source: Source, options: CsvOptions, columns: t.Struct) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    schema = to_arrow_schema(columns)
    for batch in _texts(source, options):
        pairs = zip(batch.columns, columns, strict=True)
        arrays = [_values(source, options, texts, field) for texts, field in pairs]
        yield pa.record_batch(arrays, schema=schema)


def _values(source: Source, options: CsvOptions, texts: pa.Array, field: t.Field) -> pa.Array:
    import pyarrow as pa

    try:
        if field.type != t.NULL:
            return values(texts, field.type)
        if texts.null_count == len(texts):
            return pa.nulls(len(texts))
        what, why = "nothing", f"{texts.drop_null()[0]}"
    except EvaluationError as error:
        what, why = f"a {field.type}", error.message
    raise source.failed(
        f"has a column {field.name!r} that holds {what} in its first {options.infer_rows:,} rows, "
        f"and later something else: {why}",
        hint="look at all rows, with the option infer_rows=0",
    )


def _names(source: Source, options: CsvOptions) -> tuple[str, ...]:
    with source.open() as stream:
        try:
            head = read_head(stream, options.dialect)
        except ValueError as error:
            raise source.failed(f"can't be read: {error}", hint=_HINT) from error
    if options.has_header:
        head.check(head.names, path=source.name, engine="arrow")
        return head.names
    return tuple(f"f{number}" for number in range(len(head.names)))


def _texts(source: Source, options: CsvOptions) -> Iterator[pa.RecordBatch]:
    """All fields as text, block by block; unquoted ones that say so are null."""
    import pyarrow as pa

    names = _names(source, options)
    if not names:
        return
    reader: Any = None
    with source.open() as stream, Lent(stream) as lent:
        try:
            reader = _opened(lent, options, names)
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
                if batch.num_rows:
                    yield batch
        except pa.ArrowInvalid as error:
            said = str(error).replace("invalid UTF8 data", "it is not UTF-8")
            raise source.failed(f"can't be read: {said}", hint=_HINT) from error
        finally:
            reader = None


def _opened(lent: Lent, options: CsvOptions, names: tuple[str, ...]) -> Any:
    import pyarrow as pa
    import pyarrow.csv as pc

    return pc.open_csv(
        lent.file,
        read_options=pc.ReadOptions(
            use_threads=False,
            autogenerate_column_names=not options.has_header,
            block_size=_BLOCK,
        ),
        parse_options=pc.ParseOptions(
            delimiter=options.delimiter or ",",
            quote_char=options.quote,
            escape_char=options.escape or False,
            double_quote=options.escape is None,
            newlines_in_values=True,
        ),
        convert_options=pc.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=["", *options.null_values],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
