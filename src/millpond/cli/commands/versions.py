"""`pond versions`: what was written to a node, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millpond.cli.output import human_size, short_time
from millpond.cli.params import PATH

if TYPE_CHECKING:
    from millpond.cli.context import Context


@click.command("versions")
@click.argument("path", type=PATH)
@click.pass_obj
def command(context: Context, *, path: str) -> None:
    """Show the versions of PATH, oldest first. `PATH@v3` names one of them in other commands."""
    from millpond.fs.entry import from_micros
    from millpond.fs.paths import split_version

    scope = context.read()
    plain = split_version(path).path
    rows = []
    for row in scope.versions(plain):
        first, last = row.min_event_time, row.max_event_time
        rows.append(
            {
                "version": row.version,
                "type": row.entry_type,
                "size": row.size,
                "time": row.time,
                "txn": row.txn_seq,
                "from": None if first is None else from_micros(first),
                "to": None if last is None else from_micros(last),
                "blake3": row.blake3,
            }
        )
    context.out.rows(
        rows,
        show={"size": human_size, "time": short_time, "from": short_time, "to": short_time},
        right=("version", "size", "txn"),
    )
