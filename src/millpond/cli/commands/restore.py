"""`pond restore`: removed nodes, and older versions, come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millpond.cli.params import PATH

if TYPE_CHECKING:
    from millpond.cli.context import Context


@click.command("restore")
@click.argument("paths", metavar="PATH[@vN]...", nargs=-1, required=True, type=PATH)
@click.pass_obj
def command(context: Context, *, paths: tuple[str, ...]) -> None:
    """Bring back what was removed at PATH, or make version N of it the newest again.

    A version is restored as a new version on top, so that nothing of the history is lost.

    \b
    Examples:
      pond restore /sensors/old.csv
      pond restore /sensors/a@v3
    """
    with context.write("restore") as tx:
        restored = {path: tx.restore(path) for path in paths}
        versions = {path: found.row.version for path, found in restored.items() if found.row}
        said = ", ".join(f"restored {path} as version {versions[path]}" for path in versions)
        context.committed(tx, said, restored=versions)
