"""`weblog`: what web servers log, in the common or the combined format, line by line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, ClassVar, Final

from millpond.plan import types as t
from millpond.plan.arrow import to_arrow_schema
from millpond.provider.formats.format import Format, Options, Parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from millpond.provider.formats.format import Source

COLUMNS: Final = t.Struct.of(
    ip=t.STRING, ident=t.STRING, user=t.STRING, timestamp=t.TIMESTAMP,
    method=t.STRING, path=t.STRING, protocol=t.STRING, status=t.INTEGER, bytes=t.LONG,
    referer=t.STRING, agent=t.STRING,
)  # fmt: skip
_BATCH: Final = 16 * 1024
_QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
_LINE: Final = re.compile(
    rf"(\S+) (\S+) (.+?) \[([^\]]+)\] {_QUOTED} (\d{{3}}|-) (\d+|-)(?: {_QUOTED} {_QUOTED}.*)?"
)
_REQUEST: Final = re.compile(r"([A-Za-z][A-Za-z_-]*) (\S.*?)(?: (HTTP/\S+|[A-Z]+/\d\S*))?")
_TIME: Final = re.compile(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun",
                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")  # fmt: skip
_ESCAPED: Final = re.compile(r'\\(["\\])')
_SHOWN: Final = 80
_HINT: Final = (
    'the common log format is: ip ident user [day/Mon/year:hh:mm:ss +0000] "request" status bytes, '
    'and the combined one goes on with "referer" "agent"'
)


class WeblogOptions(Options):
    """There are none."""


class Weblog(Format[WeblogOptions]):
    """Logs of web servers."""

    options = WeblogOptions
    summary: ClassVar[str] = "logs of web servers, common and combined"
    guesses: ClassVar[bool] = False

    def parse(self, source: Source, options: WeblogOptions) -> Parsed:
        """The rows; `-` is null."""
        del options
        return Parsed(to_arrow_schema(COLUMNS), _batches(source))


def _batches(source: Source) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    schema = to_arrow_schema(COLUMNS)
    rows: list[tuple[Any, ...]] = []
    for number, line in source.lines():
        if line.strip():
            rows.append(_row(source, number, line))
        if len(rows) == _BATCH:
            yield pa.record_batch(list(zip(*rows, strict=True)), schema=schema)
            rows = []
    if rows:
        yield pa.record_batch(list(zip(*rows, strict=True)), schema=schema)


def _row(source: Source, number: int, line: bytes) -> tuple[Any, ...]:
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise source.failed_line(number, "is not UTF-8", hint="convert the file") from error
    found = _LINE.fullmatch(text)
    time = None if found is None else _time(found[4])
    if found is None or time is None:
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
        raise source.failed_line(number, f"is no line of a web log: {shown}", hint=_HINT)
    ip, ident, user, _, request, status, size, referer, agent = found.groups()
    return (
        *map(_text, (ip, ident, user)),
        time,
        *_request(request),
        None if status == "-" else int(status),
        None if size == "-" else int(size),
        _text(referer),
        _text(agent),
    )


def _request(text: str) -> tuple[str | None, str | None, str | None]:
    """Method, path and protocol; what is no request of HTTP is a path as a whole."""
    plain = _text(text)
    found = None if plain is None else _REQUEST.fullmatch(plain)
    return (None, plain, None) if found is None else (found[1], found[2], found[3])


def _text(text: str | None) -> str | None:
    return None if text in (None, "-") else _ESCAPED.sub(r"\1", text or "")


def _time(text: str) -> datetime | None:
    found = _TIME.fullmatch(text)
    if found is None or found[2] not in _MONTHS:
        return None
    day, _, year, hour, minute, second = found.group(1, 2, 3, 4, 5, 6)
    shift = timedelta(hours=int(found[8]), minutes=int(found[9]))
    try:
        zone = timezone(-shift if found[7] == "-" else shift)
        month = _MONTHS.index(found[2]) + 1
        local = datetime(
            int(year), month, int(day), int(hour), int(minute), int(second), tzinfo=zone
        )
    except ValueError:
        return None
    return local.astimezone(UTC)
