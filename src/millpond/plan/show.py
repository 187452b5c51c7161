"""Rows as a table on the screen: what `plan.show()` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.plan.text import one_line, shorten
from millpond.plan.types import is_numeric

if TYPE_CHECKING:
    import pyarrow as pa

    from millpond.plan.types import Struct

_CELL = 60
"""The most characters of a value."""


def print_rows(table: pa.Table, schema: Struct, n: int) -> None:
    """The first `n` rows under their columns' names and types; a line says if there are more."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for field in schema:
        title = Text(one_line(field.name)).append(f"\n{shorten(str(field.type), 30)}", "dim")
        shown.add_column(title, justify="right" if is_numeric(field.type) else "left", no_wrap=True)
    for row in zip(*(column.to_pylist() for column in table.slice(0, n).columns), strict=True):
        shown.add_row(*(Text("null", "dim") if v is None else Text(_cell(v)) for v in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        # A file or a pipe is as wide as it has to be.
        widest = Measurement.get(console, console.options.update(width=10_000), shown).maximum
        console.width = max(console.width, widest)
    console.print(shown)
    count = min(table.num_rows, n)
    more = ", and there are more" if table.num_rows > n else ""
    console.print(f"{count} row{'' if count == 1 else 's'}{more}")


def _cell(value: Any) -> str:
    return shorten(one_line(value if isinstance(value, str) else str(value)), _CELL)
