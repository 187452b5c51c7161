"""`pond mv`: other names and directories for nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millpond.cli.params import PATH

if TYPE_CHECKING:
    from millpond.cli.context import Context


@click.command("mv")
@click.argument("sources", nargs=-1, required=True, type=PATH)
@click.argument("target", type=PATH)
@click.pass_obj
def command(context: Context, *, sources: tuple[str, ...], target: str) -> None:
    """Move SOURCES to TARGET: into it if it is a directory, else that becomes the name.

    What is in a directory comes along, however much it is. Nothing is ever replaced.
    """
    from millpond.cli.selecting import chosen
    from millpond.fs.paths import child

    with context.write("mv") as tx:
        found = chosen(tx.tree, sources)
        into = child(target, "") if len(found) > 1 else target  # several need a directory
        moved = {source: tx.move(source, into).path for source in found}
        said = ", ".join(f"moved {source} to {path}" for source, path in moved.items())
        context.committed(tx, said, moved=moved)
