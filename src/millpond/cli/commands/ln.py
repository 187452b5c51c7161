"""`pond ln -s`: symbolic links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millpond.cli.params import PATH

if TYPE_CHECKING:
    from millpond.cli.context import Context


@click.command("ln")
@click.option("-s", "--symbolic", is_flag=True, help="A link by name; there are no others.")
@click.argument("target", shell_complete=PATH.shell_complete)
@click.argument("path", type=PATH)
@click.pass_obj
def command(context: Context, *, symbolic: bool, target: str, path: str) -> None:
    """Make a link at PATH that leads to TARGET; if PATH is a directory, the link is made in it.

    TARGET need not be there. Without a / in front it is seen from the directory of the link.
    """
    from millpond.fs.paths import child
    from millpond.fs.resolve import try_resolve

    if not symbolic:
        raise click.UsageError("There are only symbolic links: pond ln -s TARGET PATH")
    with context.write("ln") as tx:
        there = try_resolve(tx.tree, path)
        if path.endswith("/") or (there is not None and there.entry_type.is_directory):
            path = child(path, target.rstrip("/").rpartition("/")[2])
        made = tx.make_link(path, target).path
        context.committed(tx, f"{made} leads to {target}", path=made, target=target)
