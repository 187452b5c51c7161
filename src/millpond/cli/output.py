"""Commands return rows; this turns them into a table for people or JSON for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence


def write_rows(rows: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    """Rows of one shape to standard output."""
    if as_json:
        click.echo(json.dumps(list(rows), indent=2, default=str))
        return
    if not rows:
        return
    names = list(rows[0])
    cells = [names, *([("" if v is None else str(v)) for v in row.values()] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    for number, line in enumerate(cells):
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo(click.style(text.rstrip(), bold=number == 0))
