"""What commands say: data to standard output, for people or as JSON; all else to standard error."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from millpond.base.unsaid import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from click._termui_impl import ProgressBar

    Show = Mapping[str, Callable[[Any], str]]


_PIECE = 32_768


@dataclass(slots=True)
class Output:
    """Where a command puts what it found. Values are exact; `show` says how people see them."""

    as_json: bool = False

    def rows(
        self,
        rows: Sequence[Mapping[str, Any]],
        *,
        show: Show | None = None,
        right: Iterable[str] = (),
        header: bool = True,
    ) -> None:
        """Rows of one shape: a table, or JSON. `right` names columns that stand to the right."""
        if self.as_json:
            lines = ",\n".join(encoded(row) for row in rows)
            self.text(f"[\n{lines}\n]\n" if rows else "[]\n")
        elif rows:
            self.text(_table(rows, show or {}, frozenset(right), header=header))

    def facts(self, facts: Mapping[str, Any], *, show: Show | None = None) -> None:
        """Names and values: a line each, or one JSON object."""
        if self.as_json:
            self.text(f"{encoded(facts)}\n")
            return
        width = max(map(len, facts), default=0)
        shown = show or {}
        for name, value in facts.items():
            cell = _cell(value, shown.get(name))
            self.text(f"{name.ljust(width)}  {cell}".rstrip() + "\n")

    def done(self, message: str, **facts: Any) -> None:
        """What was done: a message for people, or the facts as JSON."""
        if self.as_json:
            self.facts(facts)
        else:
            self.say(message)

    def text(self, text: str) -> None:
        """Data as it is."""
        # In pieces: where Python does not buffer, it takes a large write that failed for done.
        for start in range(0, len(text), _PIECE):
            click.echo(text[start : start + _PIECE], nl=False)

    def data(self, chunk: bytes) -> None:
        """Bytes as they are."""
        click.echo(chunk, nl=False)

    def say(self, message: str) -> None:
        """A message to standard error, without the secrets of URLs."""
        click.echo(masked(message), err=True)

    @contextmanager
    def progress(self, label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """A bar on standard error, where that is a terminal; the function moves it on by steps."""
        if self.as_json or not sys.stderr.isatty():
            yield lambda _steps: None
            return
        bar: ProgressBar[int]
        with click.progressbar(length=total, label=label, file=sys.stderr) as bar:
            yield bar.update


def encoded(value: Any) -> str:
    """A value as JSON, in one line."""
    return _ENCODER.encode(value)


def _plain(value: Any) -> Any:
    """What JSON has no words for."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return list(value) if isinstance(value, set | frozenset | tuple) else str(value)


_ENCODER = json.JSONEncoder(default=_plain, ensure_ascii=False)


def has_color() -> bool:
    """Whether colors are welcome: https://no-color.org."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _table(
    rows: Sequence[Mapping[str, Any]], show: Show, right: frozenset[str], *, header: bool
) -> str:
    names = list(rows[0])
    columns = [_column([row[name] for row in rows], show.get(name)) for name in names]
    if header:
        columns = [[name, *cells] for name, cells in zip(names, columns, strict=True)]
    padded = [
        _padded(cells, to_right=name in right)
        for name, cells in zip(names[:-1], columns[:-1], strict=True)
    ]
    lines = ["  ".join(cells).rstrip() for cells in zip(*padded, columns[-1], strict=True)]
    if header:
        lines[0] = click.style(lines[0], bold=True)
    return "\n".join(lines) + "\n"


def _column(values: list[Any], show: Callable[[Any], str] | None) -> list[str]:
    shown = str if show is None else show
    cells = ["" if value is None else shown(value) for value in values]
    # One look at all of them is much quicker than one at each.
    return cells if "".join(cells).isprintable() else [printable(cell) for cell in cells]


def _cell(value: Any, show: Callable[[Any], str] | None) -> str:
    if value is None:
        return ""
    return printable(str(value) if show is None else show(value))


def printable(text: str) -> str:
    r"""Text without characters that move a terminal's cursor, or worse.

    >>> printable("a\nb\x1b[2J")
    'a\\nb\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _padded(cells: list[str], *, to_right: bool) -> list[str]:
    if all(map(str.isascii, cells)):
        width = max(map(len, cells))
        return [c.rjust(width) if to_right else c.ljust(width) for c in cells]
    widths = [_width(cell) for cell in cells]
    most = max(widths)
    gaps = [" " * (most - width) for width in widths]
    pairs = zip(cells, gaps, strict=True)
    return [gap + cell if to_right else cell + gap for cell, gap in pairs]


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def counted(count: int, noun: str) -> str:
    """Return a number of things, in the singular for one.

    >>> counted(1, "node"), counted(1200, "row")
    ('1 node', '1,200 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def human_size(size: int) -> str:
    """Bytes for people.

    >>> human_size(999), human_size(1536), human_size(5 * 1024**3)
    ('999 B', '1.5 KiB', '5.0 GiB')
    """
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"


def short_time(time: Any) -> str:
    """A time in UTC, to the second.

    >>> from datetime import UTC, datetime
    >>> short_time(datetime(2024, 2, 29, 12, 0, 5, 123, tzinfo=UTC))
    '2024-02-29 12:00:05'
    """
    return str(time)[:19]
