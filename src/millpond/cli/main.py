"""`pond`: its global options. `table.py` has the commands, `group.py` finds and runs them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from millpond import __version__
from millpond.cli.exits import MEANINGS
from millpond.cli.group import JSON, LazyGroup
from millpond.cli.params import variables

if TYPE_CHECKING:
    from millpond.cli.context import Context

_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {c:>3}  {text}" for c, text in MEANINGS.items())


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[JSON],
    epilog=_EPILOG,
)
@click.version_option(__version__, prog_name="pond")
@click.option(
    "--pond",
    "location",
    metavar="PATH",
    envvar="POND",
    help="The pond: a directory or a URL. Else the variable POND, or the nearest .pond.",
)
@click.option(
    "-v",
    "variables",
    metavar="KEY=VALUE",
    multiple=True,
    callback=variables,
    help="A variable for factories and queries; may be repeated.",
)
@click.option(
    "--engine",
    type=click.Choice(("auto", "arrow", "spark")),
    help="What runs queries. By itself SQL runs on Spark, all else on Arrow where it can.",
)
@click.pass_obj
def pond(
    context: Context, *, location: str | None, variables: dict[str, str], engine: str | None
) -> None:
    """Millpond: a query-native, versioned filesystem on Delta Lake.

    Data goes to standard output, messages and progress to standard error.
    """
    context.location = location or None
    context.variables = variables
    context.engine = engine


def main(args: list[str] | None = None) -> None:
    """Run `pond`; every kind of error has its exit code."""
    if "_POND_COMPLETE" in os.environ:
        from millpond.cli.completion import register

        register()
    pond.main(args)
