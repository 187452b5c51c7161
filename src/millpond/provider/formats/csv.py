"""`csv`: one record a line, types guessed from the first rows.

`delimiter` (`,`; tabs for `.tsv`), `quote`, `escape`, `has_header`, `null_values` (an unquoted
empty field is null by itself), `infer_rows`: from how many rows types are guessed, 0 for all.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import BeforeValidator, Field, field_validator

from millpond.engine.arrow.guess.csv import INFER_ROWS, guess_csv
from millpond.engine.arrow.source.csvfile import csv_values
from millpond.engine.arrow.source.csvtext import CsvText
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.sources import CsvOptions as Dialect
from millpond.plan.sources import File, Scan
from millpond.plan.unite import settled
from millpond.provider.formats.format import Format, Options, Parsed
from millpond.provider.formats.packed import plain_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from millpond.plan import types as t
    from millpond.plan.node import Plan
    from millpond.provider.formats.format import Source


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
    version: ClassVar[int] = 2

    def for_file(self, name: str, options: CsvOptions) -> CsvOptions:
        """Fields of `.tsv` files are parted by tabs, unless something else is said."""
        if options.delimiter is not None:
            return options
        is_tabs = plain_name(name).endswith(".tsv")
        return options.model_copy(update={"delimiter": "\t" if is_tabs else ","})

    def parse(self, source: Source, options: CsvOptions) -> Parsed:
        """The rows, in two passes: types, then values."""
        text = _text(source, options)
        columns = _guessed(text, source, options)
        return Parsed(to_arrow_schema(columns), _rows(text, columns))

    def columns(self, source: Source, options: CsvOptions) -> t.Struct | None:
        """The columns; engines know nothing of escapes and of other words for null."""
        if options.escape is not None or options.null_values:
            return None
        return _guessed(_text(source, options), source, options)

    def scan(self, files: list[tuple[str, int]], columns: t.Struct, options: CsvOptions) -> Plan:
        """The rows of files; text that does not look like its column's type is an error."""
        found = tuple(File(path, size) for path, size in files)
        return Scan("csv", found, settled(columns), csv=options.dialect, strict=True)


def _text(source: Source, options: CsvOptions) -> CsvText:
    escape, null_values = options.escape, options.null_values
    return CsvText(source.name, source.open, options.dialect, escape, null_values)


def _guessed(text: CsvText, source: Source, options: CsvOptions) -> t.Struct:
    columns = guess_csv(text, options.infer_rows).columns
    if not columns.fields:
        raise source.failed("shows no columns", hint="a CSV file begins with a line of names")
    return columns


def _rows(text: CsvText, columns: t.Struct) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    schema, before = to_arrow_schema(columns), 0
    with closing(text.batches(columns.names)) as batches:
        for batch in batches:
            arrays = [
                csv_values(text, texts, field, before, guessed=True)
                for texts, field in zip(batch.columns, columns, strict=True)
            ]
            before += batch.num_rows
            yield pa.record_batch(arrays, schema=schema)
