"""Rows as a table for people: names, types, and cells of bounded width, while they come.

The first rows decide how wide columns are; what is wider later on is cut, as is what is longer than
60 characters. Other formats show values whole.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from millpond.plan.arrow import from_arrow_schema
from millpond.plan.types import is_numeric
from millpond.steward.rows.text import json_values, pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from millpond.plan.types import Struct

FIRST_ROWS: Final = 1000
WIDEST: Final = 60
_NARROWEST: Final = 6
_GAP: Final = "  "


def show_rows(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    write: Callable[[str], None],
    *,
    width: int | None,
) -> int:
    """Write all rows; how many there were. With a width, lines are cut to fit it."""
    columns = from_arrow_schema(schema)
    lines = _lines(columns, batches)
    first = list(islice(lines, FIRST_ROWS))
    head = [[_cell(field.name) for field in columns], [_cell(str(f.type)) for f in columns]]
    widths = [max(map(_width, cells)) for cells in zip(*head, *first, strict=True)]
    if width is not None:
        widths = _fitted(widths, width)
    right = [is_numeric(field.type) for field in columns]
    write(click.style(_line(head[0], widths, right), bold=True) + "\n")
    write(click.style(_line(head[1], widths, right), dim=True) + "\n")
    count = 0
    for block in _blocks(first, lines):
        write("".join(_line(cells, widths, right) + "\n" for cells in block))
        count += len(block)
    return count


def _blocks(first: list[list[str]], rest: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    block = first
    while block:
        yield block
        block = list(islice(rest, FIRST_ROWS))


def _lines(schema: Struct, batches: Iterable[pa.RecordBatch]) -> Iterator[list[str]]:
    for batch in batches:
        for piece in pieces(batch):
            columns = [
                [_value(value) for value in json_values(column, field.type, field.name)]
                for column, field in zip(piece.columns, schema, strict=True)
            ]
            if columns:
                yield from (list(cells) for cells in zip(*columns, strict=True))
            else:
                yield from ([] for _ in range(piece.num_rows))


def _value(value: Any) -> str:
    from millpond.cli.output import encoded

    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _cell(encoded(value) if isinstance(value, dict | list) else str(value))


def _cell(text: str) -> str:
    from millpond.cli.output import printable

    return _cut(printable(text[: 4 * WIDEST]), WIDEST)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    found = []
    for cell, width, to_right in zip(cells, widths, right, strict=True):
        shown = _cut(cell, width)
        gap = " " * (width - _width(shown))
        found.append(gap + shown if to_right else shown + gap)
    return _GAP.join(found).rstrip()


def _cut(text: str, width: int) -> str:
    if text.isascii():
        return text if len(text) <= width else text[: width - 1] + "…"
    if _width(text) <= width:
        return text
    kept = text
    while kept and _width(kept) > width - 1:
        kept = kept[:-1]
    return kept + "…"


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _fitted(widths: list[int], room: int) -> list[int]:
    """Narrower columns, the widest ones first, until a line fits; it may still be too long."""
    found = list(widths)
    while sum(found) + len(_GAP) * (len(found) - 1) > room:
        at = max(range(len(found)), key=found.__getitem__)
        if found[at] <= _NARROWEST:
            break
        found[at] -= 1
    return found
