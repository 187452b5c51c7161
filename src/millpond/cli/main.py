"""`pond`: global options, and a table of commands whose code is imported only when called.

`pond --help` must feel instant, so the table holds each command's one-line help.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from importlib import import_module

import click

from millpond import __version__
from millpond.base.errors import ConfigError, EngineUnavailableError, MillpondError, PlanError

COMMANDS = {
    "engine": ("millpond.cli.commands.engine", "Show the engines that can run here."),
    "settings": ("millpond.cli.commands.settings", "Show every setting, its value and its origin."),
}

EXIT_CODES: tuple[tuple[type[MillpondError], int], ...] = (
    (ConfigError, 3),
    (PlanError, 4),
    (EngineUnavailableError, 5),
)
"""Exit codes by kind of error; any other error of ours is 1, wrong usage is 2."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the global options said."""

    as_json: bool


class LazyGroup(click.Group):
    """A group that knows its commands' help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, sorted."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name][0])
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(n, COMMANDS[n][1]) for n in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pond")
@click.option("--json", "as_json", is_flag=True, help="Write data and errors as JSON.")
@click.pass_context
def pond(ctx: click.Context, *, as_json: bool) -> None:
    """Millpond: a query-native, versioned filesystem on Delta Lake.

    Data goes to standard output, messages and progress to standard error.
    """
    ctx.obj = Context(as_json)


def main(args: list[str] | None = None) -> None:
    """Run `pond`; an error of ours is printed with its hint and sets the exit code."""
    given = sys.argv[1:] if args is None else args
    try:
        pond.main(given, prog_name="pond", standalone_mode=True)
    except MillpondError as error:
        if "--json" in given:
            click.echo(json.dumps(error.to_dict()), err=True)
        else:
            click.echo(f"error: {error}", err=True)
        code = next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)
        sys.exit(code)
