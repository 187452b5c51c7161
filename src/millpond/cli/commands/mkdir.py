"""`pond mkdir`: make directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millpond.cli.params import PATH

if TYPE_CHECKING:
    from millpond.cli.context import Context


@click.command("mkdir")
@click.argument("paths", nargs=-1, required=True, type=PATH)
@click.option("-p", "--parents", is_flag=True, help="Also those above; what is there is no error.")
@click.pass_obj
def command(context: Context, *, paths: tuple[str, ...], parents: bool) -> None:
    """Make the directories PATHS, all of them or none."""
    with context.write("mkdir") as tx:
        for path in paths:
            tx.make_directory(path, parents=parents)
        context.committed(tx, f"made {' '.join(paths)}", paths=list(paths))
