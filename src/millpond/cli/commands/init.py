"""`pond init`: make a pond."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from millpond.cli.context import Context


@click.command("init")
@click.argument("path", required=False)
@click.pass_obj
def command(context: Context, *, path: str | None) -> None:
    """Make a pond at PATH: a directory or a URL.

    Without PATH it is made where --pond or the variable POND says, or as .pond in the working
    directory. A directory that holds something else is left alone.
    """
    from millpond.cli.context import HERE

    context.start()
    from millpond.steward.pond import create_pond

    place = path or context.location or HERE
    _check_empty(place)
    pond = create_pond(place, settings=context.settings)
    identity = pond.identity()
    context.out.done(
        f"made a pond at {pond.location}", location=pond.location, id=identity["pond.id"]
    )


def _check_empty(place: str) -> None:
    """A pond is a directory of its own."""
    from millpond.base.errors import PondExistsError
    from millpond.kernel.paths import table_location

    local = table_location(place)
    if "://" in local:
        return
    directory = Path(local)
    if (directory / "data" / "_delta_log").exists():
        return  # a pond: whoever makes it says so
    if not directory.exists() or (directory.is_dir() and not list(directory.iterdir())):
        return
    what = "is a directory with something else in it" if directory.is_dir() else "is a file"
    raise PondExistsError(
        f"{directory} {what}",
        location=str(directory),
        hint=f"choose a place of its own: pond init {directory / 'pond'}",
    )
