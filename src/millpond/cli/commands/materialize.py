"""`pond materialize`: make a computed node a stored one that is kept up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millpond.cli.params import PATH

if TYPE_CHECKING:
    from millpond.cli.context import Context

PLACE = "/etc/materialize"
AFTER_COMMITS = "/etc/system.d"


@click.command("materialize")
@click.argument("source", type=PATH)
@click.argument("target", type=PATH)
@click.option("--after-commits", is_flag=True, help="Bring it up to date after every write, too.")
@click.pass_obj
def command(context: Context, *, source: str, target: str, after_commits: bool) -> None:
    """Write the rows of SOURCE down as the table TARGET, now and whenever they have changed.

    It makes a node in /etc/materialize that `pond run` brings up to date; with --after-commits one
    in /etc/system.d, which runs after every write. Nothing is written where nothing has changed.

    \b
    Examples:
      pond materialize /derived/daily /published/daily
      pond run /etc/materialize/published-daily
    """
    from millpond.cli.doing import doing
    from millpond.provider.factories.materialize import refresh

    directory = AFTER_COMMITS if after_commits else PLACE
    name = target.strip("/").replace("/", "-")
    node = f"{directory}/50-{name}" if after_commits else f"{directory}/{name}"
    with context.write("materialize") as tx, doing(context, f"computing {source}"):
        tx.row(source)
        refresh(tx, source, target)
        tx.make_directory(directory, parents=True)
        tx.make_factory(node, "materialize", {"source": source, "target": target})
        tx.commit()
    version = context.read().stat(target).version
    context.out.done(
        f"{target} has the rows of {source}; pond run {node} brings it up to date",
        source=source,
        target=target,
        node=node,
        version=version,
    )
