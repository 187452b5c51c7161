"""`pond recover`: finish what a crash left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from millpond.cli.context import Context


@click.command("recover")
@click.option(
    "--patience",
    "patience_s",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="Leave alone what began on other machines less long ago.",
)
@click.pass_obj
def command(context: Context, *, patience_s: float) -> None:
    """Publish what was committed, and mark as failed what was not; twice does nothing more.

    What a process of this machine is still at work on is left alone.
    """
    found = context.open_pond().recover(patience_s=patience_s)
    facts = {
        "published": found.published,
        "completed": list(found.completed),
        "failed": list(found.failed),
        "running": list(found.running),
    }
    if context.as_json:
        context.out.facts(facts)
        return
    out = context.out
    if found.published:
        out.say(f"published {found.published} commits of tables")
    for seq in found.completed:
        out.say(f"transaction {seq} was committed; its records are now complete")
    for txn_id in found.failed:
        out.say(f"{txn_id} ended before it was committed; nothing of it was kept")
    for txn_id in found.running:
        out.say(f"{txn_id} may still be at work, and is left alone")
    if found.is_clean:
        out.say("nothing had to be done")
