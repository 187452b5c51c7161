"""`pond run`: run an executable node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millpond.cli.params import PATH

if TYPE_CHECKING:
    from millpond.cli.context import Context


@click.command("run", context_settings={"ignore_unknown_options": True})
@click.argument("path", type=PATH)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("--mode", help="What it is to do; else what factory.NAME.mode says, or the usual.")
@click.pass_obj
def command(context: Context, *, path: str, args: tuple[str, ...], mode: str | None) -> None:
    """Run the node at PATH; ARGS are given to its factory.

    \b
    Examples:
      pond run /etc/system.d/10-backup
      pond run /collect/logs --mode push
    """
    from millpond.cli.doing import doing
    from millpond.steward.running import run_node

    pond = context.open_pond()
    before = pond.read().txn_seq
    with doing(context, f"running {path}"):
        done = run_node(pond, path, mode=mode, args=args)
    if not context.as_json:
        for line in done.told:
            context.out.say(line)
    made = pond.read().txn_seq - before
    said = "nothing was written" if not made else f"{made} transaction{'s' if made > 1 else ''}"
    facts = {"factory": done.factory, "mode": done.mode, "transactions": made, "told": done.told}
    context.out.done(f"ran {path} ({done.factory}, {done.mode}): {said}", path=path, **facts)
