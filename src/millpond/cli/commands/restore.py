"""`pond restore`: removed nodes, and older versions, come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millpond.cli.params import AS_OF, PATH

if TYPE_CHECKING:
    from datetime import datetime

    from millpond.cli.context import Context


@click.command("restore")
@click.argument("paths", metavar="PATH[@vN]...", nargs=-1, required=True, type=PATH)
@click.option("--as-of", type=AS_OF, help="Restore it as it was after a transaction or at a time.")
@click.pass_obj
def command(context: Context, *, paths: tuple[str, ...], as_of: int | datetime | None) -> None:
    """Bring back what was removed at PATH, or make version N of it the newest again.

    A version is restored as a new version on top, so that nothing of the history is lost. A version
    of a series is what it brought, and the series is that alone then; --as-of restores all of it.

    \b
    Examples:
      pond restore /sensors/old.csv
      pond restore /sensors/a@v3
      pond restore /sensors/a --as-of 12
    """
    with context.write("restore") as tx:
        restored = {path: tx.restore(path, as_of=as_of) for path in paths}
        versions = {path: found.row.version for path, found in restored.items() if found.row}
        said = ", ".join(f"restored {path} as version {versions[path]}" for path in versions)
        context.committed(tx, said, restored=versions)
