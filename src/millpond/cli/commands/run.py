"""`pond run`: run an executable node; its factory declares the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from millpond.cli.params import PATH

if TYPE_CHECKING:
    from millpond.cli.context import Context
    from millpond.fs.command import NodeCommand
    from millpond.steward.running import Runnable

_AS_GIVEN = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command("run", context_settings=_AS_GIVEN)
@click.argument("path", type=PATH)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND] [OPTIONS]")
@click.pass_context
def command(ctx: click.Context, *, path: str, words: tuple[str, ...]) -> None:
    """Run the node at PATH. `pond run PATH --help` shows its commands and their options.

    \b
    Examples:
      pond run /etc/system.d/10-backup
      pond run /ingest --help
      pond run /ingest --dry-run
      pond run /ingest status
    """
    from millpond.cli.group import with_json
    from millpond.cli.nodecommand import NodeCommands
    from millpond.fs.factory import factory
    from millpond.steward.running import runnable

    context: Context = ctx.obj
    node = runnable(context.open_pond(), path)

    def run(declared: NodeCommand, values: dict[str, Any]) -> None:
        _run(context, node, declared, values)

    summary = getattr(factory(node.factory), "summary", "")
    group = with_json(
        NodeCommands(
            node.commands, node.default, run, summary=f"{node.factory}: {summary or 'run a node'}."
        )
    )
    with group.make_context(f"run {path}", list(words), parent=ctx.parent) as inner:
        group.invoke(inner)


def _run(context: Context, node: Runnable, declared: NodeCommand, values: dict[str, Any]) -> None:
    from millpond.cli.doing import doing

    before = node.pond.read().txn_seq
    with doing(context, f"running {node.path}"):
        done = node.run(declared.name, values)
    if declared.reports:
        _report(context, done.result)
        return
    if not context.as_json:
        for line in done.told:
            context.out.say(line)
    made = node.pond.read().txn_seq - before
    said = "nothing was written" if not made else f"{made} transaction{'s' if made > 1 else ''}"
    facts = {
        "factory": done.factory,
        "command": done.command,
        "transactions": made,
        "told": done.told,
    }
    message = f"ran {node.path} ({done.factory}, {done.command}): {said}"
    context.out.done(message, path=node.path, **facts)


def _report(context: Context, result: Any) -> None:
    """Show what a command has found."""
    if isinstance(result, dict):
        context.out.facts(result)
    else:
        context.out.rows(list(result or ()))
