"""The group behind `pond`: commands are imported when called, and every end has its exit code."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from millpond.base.errors import MillpondError
from millpond.base.unsaid import masked
from millpond.cli.context import Context
from millpond.cli.exits import BROKEN_PIPE, INTERRUPTED, OTHER, exit_code
from millpond.cli.output import encoded, has_color
from millpond.cli.table import ALIASES, COMMANDS, SECTIONS, find_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem


def _set_json(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del param
    context = ctx.find_object(Context)
    if value and context is not None:
        context.out.as_json = True


JSON = click.Option(
    ["--json", "as_json"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_set_json,
    help="Write data and errors as JSON.",
)
"""It may stand before a command, or behind it."""


class LazyGroup(click.Group):
    """A group that knows its commands' help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        del ctx
        entry = find_command(cmd_name)
        if entry is None:
            return None
        command: click.Command = import_module(entry.home).command
        command.short_help = entry.help
        return with_json(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; one that is not there is wrong usage that names similar ones."""
        name = args[0]
        if find_command(name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(name, [*COMMANDS, *ALIASES], n=3)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table."""
        del ctx
        for title, entries in SECTIONS:
            with formatter.section(title):
                formatter.write_dl([(", ".join((e.name, *e.aliases)), e.help) for e in entries])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands that begin like this, from the table."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=entry.help)
            for name, entry in (COMMANDS | ALIASES).items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run a command line and leave the process with its exit code."""
        given = list(sys.argv[1:] if args is None else args)
        if not extra.pop("standalone_mode", True):
            return super().main(given, standalone_mode=False, **extra)
        context = Context(args=given, owns_process=args is None)
        extra = {"prog_name": "pond", "color": None if has_color() else False, **extra}
        sys.exit(self._run(given, context, {**extra, "obj": context}))

    def _run(self, given: list[str], context: Context, extra: dict[str, Any]) -> int:
        try:
            code = super().main(given, standalone_mode=False, **extra)
            sys.stdout.flush()
        except click.ClickException as error:
            vars(error)["message"] = masked(error.message)
            if not _wants_json(context, given):
                error.show()
            else:
                said = {"error": "UsageError", "message": error.format_message(), "hint": None}
                click.echo(encoded(said), err=True)
            return error.exit_code
        except MillpondError as error:
            text = encoded(error.to_dict()) if _wants_json(context, given) else f"error: {error}"
            click.echo(text, err=True)
            return exit_code(error)
        except click.Abort as error:
            return INTERRUPTED if isinstance(error.__cause__, KeyboardInterrupt) else OTHER
        except BrokenPipeError:
            return _forget_output()
        return code if isinstance(code, int) else 0

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; that nobody reads its output any more is told by the exit code alone."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            ctx.exit(_forget_output())


def _forget_output() -> int:
    """What is still buffered goes nowhere, so that the interpreter does not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


def _wants_json(context: Context, given: list[str]) -> bool:
    """Also where the command line could not be read to its end."""
    return context.as_json or "--json" in given


def with_json(command: click.Command) -> click.Command:
    """Give a command and those in it the option `--json`."""
    if JSON not in command.params:
        command.params.append(JSON)
    for inner in getattr(command, "commands", {}).values():
        with_json(inner)
    return command
