"""`pond settings`: every setting, its value and where it came from. Secrets stay masked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from millpond.cli.context import Context


@click.command("settings", help="Show every setting, its value and its origin.")
@click.pass_obj
def command(context: Context) -> None:
    """Print the settings as they hold for this call."""
    rows = [
        {"setting": row.name, "value": row.value, "origin": row.origin}
        for row in context.settings.describe()
    ]
    context.out.rows(rows)
