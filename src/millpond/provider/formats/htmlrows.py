"""The rows of all tables of an HTML page, one after the other, in bounded memory.

Tables within tables are tables of their own. Ends of cells and rows may be missing.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.provider.formats.format import Source

HtmlRow: TypeAlias = tuple[int, int, list[str]]
"""The number of the table, the number of the row in the page, and the texts of its cells."""
_CHUNK: Final = 1 << 18
_CHARSET: Final = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?([A-Za-z0-9_-]+)""", re.I)
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"),
                 (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
_WORKBOOKS: Final = (b"\xd0\xcf\x11\xe0", b"PK\x03\x04")
_HIDDEN: Final = ("script", "style")
_WIDEST: Final = 16_384
"""So many columns a sheet can have."""


def html_rows(source: Source, encoding: str | None) -> Iterator[HtmlRow]:
    """The rows of a page, each as soon as it ends."""
    with source.open() as stream:
        head = stream.read(_CHUNK)
        if head.startswith(_WORKBOOKS):
            raise source.failed(
                "is a workbook of Excel, not a page of HTML",
                hint="export it as HTML, or save it as CSV and read it by csv://",
            )
        decoder = codecs.getincrementaldecoder(encoding or _encoding(head))("strict")
        rows = _Rows()
        chunk = head
        try:
            while chunk:
                rows.feed(decoder.decode(chunk))
                yield from rows.taken()
                chunk = stream.read(_CHUNK)
            rows.feed(decoder.decode(b"", final=True))
        except UnicodeDecodeError as error:
            raise source.failed(
                f"is no text in {error.encoding}", hint="say which one it is: encoding=cp1252"
            ) from error
        rows.close()
        yield from rows.taken()


def _encoding(head: bytes) -> str:
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    found = _CHARSET.search(head[:4096])
    try:
        return codecs.lookup(found[1].decode()).name if found else "utf-8"
    except LookupError:
        return "utf-8"


@dataclass
class _Table:
    """A table that is open."""

    number: int
    cells: list[str] | None = None
    """Of the row that is open."""
    text: list[str] | None = None
    """Of the cell that is open."""
    span: int = 1


class _Rows(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[_Table] = []
        self._count = 0
        self._rows = 0
        self._hidden = 0
        self._taken: list[HtmlRow] = []

    def taken(self) -> list[HtmlRow]:
        """The rows that have ended since."""
        found, self._taken = self._taken, []
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden += 1
        if tag == "table":
            self._open.append(_Table(self._count))
            self._count += 1
        if not self._open:
            return
        table = self._open[-1]
        if tag == "tr":
            self._end_row(table)
            table.cells = []
        elif tag in ("td", "th"):
            self._end_cell(table)
            table.cells = table.cells if table.cells is not None else []
            table.text = []
            span = dict(attrs).get("colspan") or "1"
            table.span = min(int(span), _WIDEST) if span.isdecimal() else 1
        elif tag == "br" and table.text is not None:
            table.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        if not self._open:
            return
        if tag in ("td", "th"):
            self._end_cell(self._open[-1])
        elif tag == "tr":
            self._end_row(self._open[-1])
        elif tag == "table":
            self._end_row(self._open.pop())

    def handle_data(self, data: str) -> None:
        if self._open and not self._hidden and self._open[-1].text is not None:
            self._open[-1].text.append(data)

    def close(self) -> None:
        super().close()
        while self._open:
            self._end_row(self._open.pop())

    def _end_cell(self, table: _Table) -> None:
        if table.text is None:
            return
        assert table.cells is not None
        text = " ".join("".join(table.text).split())
        table.cells += [text, *[""] * (table.span - 1)]
        table.text = None

    def _end_row(self, table: _Table) -> None:
        self._end_cell(table)
        if table.cells is not None:
            self._rows += 1
            self._taken.append((table.number, self._rows, table.cells))
        table.cells = None
