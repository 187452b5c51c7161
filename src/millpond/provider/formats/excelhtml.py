"""`excelhtml`: the table of an HTML page, as HydroVu and VuSitu export readings for Excel.

A page may begin with other tables and rows: the place, the instrument, a calibration. The data
begins below the row that names the columns, one of them a date or a time, where the next row has a
time. A row of units may stand between. The time becomes `timestamp`, in UTC; the others keep their
names, with their units behind them if those have a row of their own: `Temperature (C)`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BeforeValidator, field_validator

from millpond.engine.arrow.guess.texts import Guess
from millpond.engine.arrow.source.csvvalues import read_texts
from millpond.plan import types as t
from millpond.plan.arrow import to_arrow_schema
from millpond.provider.formats.format import Format, Options, Parsed
from millpond.provider.formats.htmlrows import html_rows
from millpond.provider.formats.htmltime import as_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from millpond.provider.formats.format import Source

TIME: Final = "timestamp"
_NAMES: Final = ("date", "time")
_BATCH: Final = 16 * 1024
_NUMBERS: Final = (t.LONG, t.DOUBLE)
_HINT: Final = (
    "the data begins with a row of names, one of which has Date or Time in it, and rows with times "
    "below it; where times are written otherwise, say how: time_format=%d.%m.%Y %H:%M"
)


def _list(value: object) -> object:
    return tuple(value.split(",")) if isinstance(value, str) else value


class ExcelHtmlOptions(Options):
    """How a page is written."""

    time_format: str | None = None
    """As strptime has it; without, ISO 8601 and month/day/year are understood."""
    time_zone: str = "UTC"
    """Of times that name none."""
    null_values: Annotated[tuple[str, ...], BeforeValidator(_list)] = ("", "-", "--", "N/A")
    encoding: str | None = None
    """Without, what the page says, or else UTF-8."""

    @field_validator("time_zone")
    @classmethod
    def _zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError("a name such as Europe/Vienna or America/Denver") from None
        return name

    @field_validator("encoding")
    @classmethod
    def _encoding(cls, name: str | None) -> str | None:
        import codecs

        try:
            codecs.lookup(name or "utf-8")
        except LookupError:
            raise ValueError("a name such as utf-8, utf-16 or cp1252") from None
        return name


class ExcelHtml(Format[ExcelHtmlOptions]):
    """A table in HTML."""

    options = ExcelHtmlOptions
    summary: ClassVar[str] = "the HTML table that HydroVu exports for Excel"
    version: ClassVar[int] = 2

    def parse(self, source: Source, options: ExcelHtmlOptions) -> Parsed:
        """The rows, in two passes: types, then values."""
        names: tuple[str, ...] = ()
        guesses: list[Guess] = []
        for names, rows in _batches(source, options):
            guesses = guesses or [Guess(_NUMBERS) for _ in names]
            for guess, column in zip(guesses, _columns(rows, options), strict=True):
                guess.see(column)
        if not names:
            raise source.failed("shows no table of readings", hint=_HINT)
        at = names.index(TIME)
        types = (t.TIMESTAMP if n == at else guess.type for n, guess in enumerate(guesses))
        fields = (t.Field(name, type_) for name, type_ in zip(names, types, strict=True))
        columns = t.Struct(tuple(fields))
        return Parsed(to_arrow_schema(columns), _rows(source, options, columns))


def _rows(source: Source, options: ExcelHtmlOptions, columns: t.Struct) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    schema = to_arrow_schema(columns)
    for _, rows in _batches(source, options):
        arrays = []
        texts = _columns(rows, options)
        for number, field in enumerate(columns):
            if field.name == TIME:
                times = [row[number] for row in rows]
                arrays.append(pa.array(times, schema.field(number).type))
            elif field.type == t.NULL:
                arrays.append(pa.nulls(len(rows)))
            else:
                # All rows were looked at, so every text fits.
                arrays.append(read_texts(texts[number], field.type).values)
        yield pa.record_batch(arrays, schema=schema)


def _columns(rows: list[list[Any]], options: ExcelHtmlOptions) -> list[pa.Array]:
    """The cells by columns, as text; the column of the time is null."""
    import pyarrow as pa

    empty = set(options.null_values)
    return [
        pa.array(
            [None if isinstance(v, datetime) or v in empty else v for v in column], pa.string()
        )
        for column in zip(*rows, strict=True)
    ]


def _batches(
    source: Source, options: ExcelHtmlOptions
) -> Iterator[tuple[tuple[str, ...], list[list[Any]]]]:
    """The names of the columns and some rows, again and again; the time is a time already."""
    found = _Data(source, options)
    held: list[list[Any]] = []
    for table, number, cells in html_rows(source, options.encoding):
        row = found.take(table, number, cells)
        if row is not None:
            held.append(row)
        if len(held) == _BATCH:
            yield found.names, held
            held = []
    if held or found.names:
        yield found.names, held


class _Data:
    """Finds the rows of data among all rows of a page."""

    def __init__(self, source: Source, options: ExcelHtmlOptions) -> None:
        self.names: tuple[str, ...] = ()
        self._source = source
        self._options = options
        self._zone = ZoneInfo(options.time_zone)
        self._data = self._table = -1
        """The table with the data, and the one that is being read."""
        self._at = 0
        self._before: list[list[str]] = []
        """The last rows before the data: names, and perhaps units."""

    def take(self, table: int, number: int, cells: list[str]) -> list[Any] | None:
        """The row of data that these cells are; None if they are none."""
        if table != self._table:
            self._before, self._table = [], table
        if table == self._data:
            return self._row(number, cells)
        names, at = self._begins(cells)
        if names is None:
            self._before = [*self._before[-1:], cells]
            return None
        if self.names and names != self.names:
            raise self._source.failed(
                f"has two tables of readings: another one begins above row {number}",
                hint="part them: a file has one table of readings",
            )
        self.names, self._at, self._data = names, at, table
        return self._row(number, cells)

    def _begins(self, cells: list[str]) -> tuple[tuple[str, ...] | None, int]:
        """The names of the columns, if the data begins with this row."""
        at = next((n for n, cell in enumerate(cells) if self._time(cell) is not None), None)
        if at is None or len(cells) < 2:
            return None, 0
        for above, units in ((self._before[-1:], []), (self._before[-2:-1], self._before[-1:])):
            if above and self._is_header(above[0], cells, at):
                return _named(above[0], units[0] if units else [], at), at
        return None, 0

    def _is_header(self, names: list[str], cells: list[str], at: int) -> bool:
        if len(names) != len(cells) or not any(word in names[at].lower() for word in _NAMES):
            return False
        return all(names) and not any(self._time(name) for name in names)

    def _row(self, number: int, cells: list[str]) -> list[Any] | None:
        said = [cell for cell in cells if cell]
        if not said or (len(said) == 1 and self._time(said[0]) is None):
            return None  # nothing, or a remark
        if len(cells) != len(self.names):
            raise self._source.failed(
                f"has {len(cells)} cells in row {number}, and not {len(self.names)} as above",
                hint="check that the page is complete",
            )
        time = self._time(cells[self._at])
        if time is None:
            raise self._source.failed(
                f"has no time in row {number}: {cells[self._at]!r}", hint=_HINT
            )
        row: list[Any] = list(cells)
        row[self._at] = time
        return row

    def _time(self, text: str) -> datetime | None:
        return as_time(text, self._options.time_format, self._zone)


def _named(names: list[str], units: list[str], at: int) -> tuple[str, ...]:
    """Names with units; a name that comes again gets a number."""
    found: list[str] = []
    for number, name in enumerate(names):
        unit = units[number] if units else ""
        full = TIME if number == at else f"{name} ({unit})" if unit else name
        count, base = 1, full
        while full in found:
            count += 1
            full = f"{base} ({count})"
        found.append(full)
    return tuple(found)
