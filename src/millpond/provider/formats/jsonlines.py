"""`json`: one object a line; its members are columns.

Members may appear in any line, so all lines are looked at before the first row is given.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from millpond.engine.arrow.guess.json import guess_json
from millpond.engine.arrow.source.jsonlines import line_blocks, read_exact_lines
from millpond.plan import types as t
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.sources import File, Scan
from millpond.plan.unite import settled
from millpond.provider.formats.format import Format, Options, Parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from millpond.plan.node import Plan
    from millpond.provider.formats.format import Source


class JsonOptions(Options):
    """How a file is read: there is nothing to say."""


class JsonLines(Format[JsonOptions]):
    """JSON objects, one a line."""

    options = JsonOptions
    summary: ClassVar[str] = "JSON objects, one a line"
    version: ClassVar[int] = 2

    def parse(self, source: Source, options: JsonOptions) -> Parsed:
        """The rows, in two passes: columns, then values."""
        del options
        columns = _guessed(source)
        return Parsed(to_arrow_schema(columns), _rows(source, columns))

    def columns(self, source: Source, options: JsonOptions) -> t.Struct | None:
        """The columns."""
        del options
        return _guessed(source)

    def scan(self, files: list[tuple[str, int]], columns: t.Struct, options: JsonOptions) -> Plan:
        """The rows of files; what does not fit its column is an error."""
        del options
        found = tuple(File(path, size) for path, size in files)
        return Scan("json", found, settled(columns))


def _guessed(source: Source) -> t.Struct:
    columns = guess_json(source.name, partial(_blocks, source)).columns
    if not columns.fields:
        raise source.failed("shows no columns", hint="JSON lines have one object at least")
    return columns


def _rows(source: Source, columns: t.Struct) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    schema = to_arrow_schema(columns)
    for batch in read_exact_lines(_blocks(source), source.name, settled(columns)):
        arrays = [
            pa.nulls(batch.num_rows) if field.type == t.NULL else array
            for array, field in zip(batch.columns, columns, strict=True)
        ]
        yield pa.record_batch(arrays, schema=schema)


def _blocks(source: Source) -> Iterator[bytes]:
    with source.open() as stream:
        yield from line_blocks(stream.read, source.name)
