"""The commands of a node that is run, as Click has them: made of what its factory declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from millpond.cli.params import PATH, TIME
from millpond.fs.command import CommandArgument, CommandOption, key_of_part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millpond.fs.command import NodeCommand


class NodeCommands(click.Group):
    """The commands of one node. Words that name none belong to the default command."""

    def __init__(
        self,
        commands: Sequence[NodeCommand],
        default: NodeCommand,
        run: Callable[[NodeCommand, dict[str, Any]], None],
        *,
        summary: str,
    ) -> None:
        self.default = default
        made = {each.name: click_command(each, run) for each in commands}
        super().__init__(commands=made, help=summary, subcommand_metavar="[COMMAND] [OPTIONS]")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the name of the default command before words that do not name one."""
        words = [word for word in args if word != "--json"]
        first = words[0] if words else None
        if first in self.commands or (first in ctx.help_option_names and len(self.commands) > 1):
            return super().parse_args(ctx, args)
        if first is not None and not first.startswith("-") and not self.default.arguments:
            names = ", ".join(self.commands)
            raise click.UsageError(f"There is no command {first!r}. There are: {names}.", ctx)
        return super().parse_args(ctx, [self.default.name, *args])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, and the options of the default one."""
        super().format_commands(ctx, formatter)
        default = self.commands[self.default.name]
        records = [param.get_help_record(ctx) for param in default.params]
        shown = [record for record in records if record is not None]
        if shown:
            with formatter.section(f"Options of {self.default.name}, which needs not be named"):
                formatter.write_dl(shown)


def click_command(
    declared: NodeCommand, run: Callable[[NodeCommand, dict[str, Any]], None]
) -> click.Command:
    """Make a command of Click that calls `run` with the values of its options and arguments."""

    def callback(**values: Any) -> None:
        run(declared, values)

    text = declared.help
    notes = [f"  {part.name.upper()}  {part.help}" for part in declared.arguments if part.help]
    if notes:
        text = "\n".join([text, "", "\b", "Arguments:", *notes])
    return click.Command(
        declared.name,
        callback=callback,
        params=[_parameter(part) for part in declared.parts],
        help=text,
        short_help=declared.help.partition("\n")[0],
    )


def _parameter(part: CommandOption | CommandArgument) -> click.Parameter:
    key = key_of_part(part)
    if isinstance(part, CommandArgument):
        return click.Argument(
            [key],
            type=_type(part),
            required=part.required,
            nargs=-1 if part.repeated else 1,
            metavar=part.name.upper(),
        )
    if part.kind == "flag":
        return click.Option([f"--{part.name}", key], is_flag=True, default=False, help=part.help)
    return click.Option(
        [f"--{part.name}", key],
        type=_type(part),
        default=part.unset,
        required=part.required,
        multiple=part.repeated,
        help=part.help,
        show_default=part.default is not None,
    )


def _type(part: CommandOption | CommandArgument) -> click.ParamType[Any]:
    if part.choices:
        return click.Choice(part.choices)
    kinds: dict[str, click.ParamType[Any]] = {
        "integer": click.INT,
        "number": click.FLOAT,
        "time": TIME,
        "path": PATH,
        "file": click.Path(),
    }
    return kinds.get(part.kind, click.STRING)
