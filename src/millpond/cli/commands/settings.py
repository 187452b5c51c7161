"""`pond settings`: every setting, its value and where it came from. Secrets stay masked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millpond.cli.output import write_rows

if TYPE_CHECKING:
    from millpond.cli.main import Context


@click.command("settings", help="Show every setting, its value and its origin.")
@click.pass_obj
def command(context: Context) -> None:
    """Print the settings as they hold for this call."""
    from millpond.base.settings import Settings

    rows = [
        {"setting": row.name, "value": row.value, "origin": row.origin}
        for row in Settings.load().describe()
    ]
    write_rows(rows, as_json=context.as_json)
