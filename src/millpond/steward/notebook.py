"""How a handle shows itself in a notebook: what it is, and its first rows, lines or entries."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millpond.steward.handle import Handle
    from millpond.steward.scope import Stat

MOST_ROWS: Final = 10
MOST_TEXT: Final = 80


def show(handle: Handle) -> str:
    """A handle as HTML; it reads no more than it shows."""
    title = f"<b>{escape(handle.path)}</b>"
    if not handle.exists():
        return f"<p>{title}: nothing is there</p>"
    stat = handle.stat()
    title = f"<p>{title} ({escape(_facts(stat))})</p>"
    if stat.is_directory:
        entries = handle.scope.children(handle.path).values()
        rows = [[entry.path, _facts(entry)] for entry in entries]
        return title + _table(["path", "what"], rows)
    if not stat.entry_type.is_table:
        return title
    engine = handle.scope.pond.engine
    table = handle.plan().head(MOST_ROWS + 1).to_arrow(engine=engine)
    columns = [column.to_pylist() for column in table.columns]
    return title + _table(table.column_names, list(zip(*columns, strict=True)))


def _facts(stat: Stat) -> str:
    found = [str(stat.entry_type)]
    if not stat.is_directory:
        found.append(f"version {stat.version}")
    if stat.size is not None:
        found.append(f"{stat.size:,} bytes")
    if stat.target is not None:
        found.append(f"to {stat.target}")
    return ", ".join(found)


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    shown = [[_text(value) for value in row] for row in rows[:MOST_ROWS]]
    more = "<p>…</p>" if len(rows) > MOST_ROWS else ""
    head = _row("th", map(escape, names))
    return f"<table>{head}{''.join(_row('td', row) for row in shown)}</table>{more}"


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def _text(value: Any) -> str:
    text = "" if value is None else str(value)
    return escape(text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…")
