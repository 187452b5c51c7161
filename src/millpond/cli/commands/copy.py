"""`pond copy`: into the pond, out of it, and within it, in one transaction."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from millpond.cli.dataparams import PLACE, looking_here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.cli.context import Context
    from millpond.steward.copying import Copied
    from millpond.steward.places import Place


@click.command("copy")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=PLACE)
@click.argument("target", type=PLACE)
@click.option("-p", "--parents", is_flag=True, help="Make the directories of TARGET in the pond.")
@click.option("--time-column", metavar="NAME", help="The column with the time of a new series.")
@click.option("--strip-prefix", metavar="PATH", help="Copying out, leave this front of paths away.")
@click.option("--overwrite", is_flag=True, help="Copying out, exchange files that are there.")
@click.pass_obj
def command(
    context: Context,
    *,
    sources: tuple[str, ...],
    target: str,
    parents: bool,
    time_column: str | None,
    strip_prefix: str | None,
    overwrite: bool,
) -> None:
    """Copy files and whole directories into the pond, out of it, or within it.

    What begins with host:// or ./ is of this machine, everything else is of the pond. A TARGET that
    ends with / is a directory, and names are kept. All of it is one transaction.

    Into the pond, host:// copies bytes: what is there already gets a new version. host+table:// and
    host+series:// read Parquet; host+csv+table://, host+json+series://, host+delta+table:// and so
    on convert; so do csv+table:///raw/* and the like for raw files of the pond. A table gets new
    rows, a series gets more rows. Links are followed.

    Out of the pond, into a directory, the whole path is kept below it; files that are there are not
    touched without --overwrite. Rows become Parquet, or what the name of the file or the scheme
    says: .parquet, .csv, .jsonl; host+csv://. Bytes stay what they are.

    \b
    Examples:
      pond copy host:///data/readme.txt /notes/
      pond copy ./measurements /raw/
      pond copy host+series:///data/levels.parquet /sensors/levels
      pond copy 'host+csv+series:///data/?delimiter=;' /sensors/
      pond copy 'csv+table:///raw/*.csv' /tables/
      pond copy /sensors/levels host:///tmp/levels.csv
      pond copy /sensors host:///backup/ --strip-prefix /sensors
      pond copy /t@v3 /t-old
    """
    from millpond.steward.places import parse_place

    places = [parse_place(text) for text in sources]
    into = parse_place(target)
    _check_options(
        places, into, parents=parents, time_column=time_column,
        strip_prefix=strip_prefix, overwrite=overwrite,
    )  # fmt: skip
    with looking_here(sources):
        if into.is_host:
            _copy_out(context, places, into, strip_prefix=strip_prefix, overwrite=overwrite)
        else:
            _copy_in(context, places, into, make_parents=parents, time_column=time_column)


def _check_options(places: Sequence[Place], into: Place, **given: Any) -> None:
    hosts = [place for place in places if place.is_host]
    if hosts and len(hosts) < len(places):
        pond = next(place for place in places if not place.is_host)
        raise click.UsageError(
            f"{hosts[0].text} is of this machine and {pond.text} is of the pond; "
            "copy them one after the other."
        )
    if hosts and into.is_host:
        raise click.UsageError(
            f"Neither {hosts[0].text} nor {into.text} is in the pond; "
            "use cp for files of this machine."
        )
    ins, outs = ("parents", "time_column"), ("strip_prefix", "overwrite")
    for name in ins if into.is_host else outs:
        if given[name]:
            way = "into" if into.is_host else "out of"
            raise click.UsageError(f"--{name.replace('_', '-')} is for copying {way} the pond.")


def _copy_in(
    context: Context,
    places: Sequence[Place],
    into: Place,
    *,
    make_parents: bool,
    time_column: str | None,
) -> None:
    """From this machine or from the pond itself, into the pond."""
    from millpond.steward.copying.converted import CopyConverted, copy_converted
    from millpond.steward.copying.into import CopyIn, copy_in
    from millpond.steward.copying.within import CopyWithin, copy_within
    from millpond.steward.rows.selection import plain_paths

    if into.url is not None:
        raise click.UsageError(f"{into.text} says what is read; name the path alone: {into.path}.")
    with context.write("copy") as tx:
        plan: CopyIn | CopyWithin | CopyConverted
        if places[0].is_host or any(place.reader is not None for place in places):
            copy = copy_in if places[0].is_host else copy_converted
            plan = copy(tx, places, into.path, make_parents=make_parents, time_column=time_column)
        elif time_column is not None:
            raise click.UsageError("--time-column is for copying into the pond.")
        else:
            paths = [path for place in places for path in plain_paths(tx, place)]
            plan = copy_within(tx, paths, into.path, make_parents=make_parents)
        with context.out.progress("copying", plan.size) as watch:
            copied = plan.run(watch)
        done = tx.commit()
    _report(context, copied, f"in transaction {done.txn_seq}", txn_seq=done.txn_seq)


def _copy_out(
    context: Context,
    places: Sequence[Place],
    into: Place,
    *,
    strip_prefix: str | None,
    overwrite: bool,
) -> None:
    from millpond.steward.copying.out import copy_out
    from millpond.steward.rows.selection import plain_paths

    scope = context.read()
    plan = copy_out(
        scope,
        [path for place in places for path in plain_paths(scope, place)],
        into,
        strip_prefix=strip_prefix,
        overwrite=overwrite,
    )
    with context.out.progress("copying", plan.size) as watch:
        copied = plan.run(watch)
    _report(context, copied, f"to {into.path}")


def _report(context: Context, copied: Sequence[Copied], where: str, **facts: Any) -> None:
    from millpond.cli.output import human_size

    size = sum(one.size or 0 for one in copied)
    count = f"{len(copied):,} file{'' if len(copied) == 1 else 's'}"
    context.out.done(
        f"copied {count} ({human_size(size)}) {where}",
        copied=[asdict(one) for one in copied],
        **facts,
    )
