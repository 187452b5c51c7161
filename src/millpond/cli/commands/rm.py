"""`pond rm`: remove nodes. Their history stays, so they can be restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millpond.cli.params import PATH

if TYPE_CHECKING:
    from millpond.cli.context import Context


@click.command("rm")
@click.argument("paths", nargs=-1, required=True, type=PATH)
@click.option("-r", "-R", "--recursive", is_flag=True, help="Directories with all in them, too.")
@click.option("-f", "--force", is_flag=True, help="What is not there is no error.")
@click.pass_obj
def command(context: Context, *, paths: tuple[str, ...], recursive: bool, force: bool) -> None:
    """Remove PATHS, which may be patterns: all of them or none.

    `pond restore PATH` brings a node back.

    \b
    Examples:
      pond rm /sensors/old.csv
      pond rm -r '/archive/202[0-3]'
    """
    from millpond.cli.selecting import chosen

    with context.write("rm") as tx:
        found = chosen(tx.tree, paths, missing_ok=force)
        for path in found:
            tx.remove(path, recursive=recursive)
        said = f"removed {' '.join(found)}" if found else "there was nothing to remove"
        context.committed(tx, said, paths=found)
