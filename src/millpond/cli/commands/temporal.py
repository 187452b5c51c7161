"""`pond temporal`: bounds of series in time, and where series overlap."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from millpond.cli.dataparams import END_TIME
from millpond.cli.params import AS_OF, PATH, TIME

if TYPE_CHECKING:
    from datetime import datetime

    from millpond.cli.context import Context

OPEN: Final = "open"


@click.group("temporal")
def command() -> None:
    """Set time bounds of series; find overlaps."""


class _Bound(click.ParamType["datetime | str"]):
    """A time, or the word that there is none."""

    name = "time|open"

    def __init__(self, time: click.ParamType[datetime]) -> None:
        self._time = time

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime | str:
        """The time, or `open`."""
        return OPEN if value == OPEN else self._time.convert(value, param, ctx)


@command.command("set-bounds")
@click.argument("paths", nargs=-1, required=True, type=PATH)
@click.option("--min", "first", type=_Bound(TIME), help="The first time that counts.")
@click.option("--max", "last", type=_Bound(END_TIME), help="The last one; a day is meant whole.")
@click.option("--clear", is_flag=True, help="Take both bounds away.")
@click.pass_obj
def set_bounds_command(
    context: Context,
    *,
    paths: tuple[str, ...],
    first: datetime | str | None,
    last: datetime | str | None,
    clear: bool,
) -> None:
    """Let only rows of series at PATHS count that lie within bounds.

    Both ends belong to the bounds. An end that is not given stays as it is; open takes it away. The
    bounds hold in every query, for older versions and for whatever is appended later. No rows are
    lost: without bounds, all are there again. PATHS may be patterns.

    \b
    Examples:
      pond temporal set-bounds /sensors/a --min 2024-05-01 --max 2024-05-31
      pond temporal set-bounds '/sensors/*' --max open
      pond temporal set-bounds /sensors/a --clear
    """
    if clear and (first is not None or last is not None):
        raise click.UsageError("--clear takes both bounds away; give it alone.")
    if not clear and first is None and last is None:
        raise click.UsageError("Give --min, --max or both, or --clear.")
    ends: list[Any] = [
        None if clear or end == OPEN else ... if end is None else end for end in (first, last)
    ]
    with context.write("temporal set-bounds") as tx:
        found = tx.set_bounds(*paths, first=ends[0], last=ends[1])
        done = tx.commit()
    rows = [asdict(bounds) for bounds in found]
    context.out.done(
        "\n".join(f"{row['path']}: {_range(row['first'], row['last'])}" for row in rows),
        bounds=rows,
        txn_seq=done.txn_seq,
    )


def _range(first: datetime | None, last: datetime | None) -> str:
    if first is None and last is None:
        return "no bounds"
    begin = "from the beginning" if first is None else f"from {first}"
    return f"{begin} {'on' if last is None else f'to {last}'}"


@command.command("detect-overlaps")
@click.argument("paths", nargs=-1, required=True, type=PATH)
@click.option(
    "--by", type=click.Choice(("version", "path")), default="version", show_default=True,
    help="Tell versions of a series apart, or only series.",
)  # fmt: skip
@click.option("--as-of", type=AS_OF, help="The pond as it was after a transaction or at a time.")
@click.pass_obj
def detect_overlaps_command(
    context: Context, *, paths: tuple[str, ...], by: str, as_of: int | datetime | None
) -> None:
    """Show from which version, or series, the rows of a time come, and where several do.

    All series that PATHS name are taken together; PATHS may be patterns. A run is a stretch of time
    whose rows all come from one source; where sources take turns more than 50 times, they are one
    mixed run. Rows outside the bounds of a series do not count. Only times are read, and only of
    sources that overlap.

    \b
    Examples:
      pond temporal detect-overlaps /sensors/a
      pond temporal detect-overlaps '/sensors/lake-*' --by path
    """
    found = context.read(as_of).detect_overlaps(*paths, by=by)  # type: ignore[arg-type]
    if context.as_json:
        context.out.facts(asdict(found))
        return
    out = context.out
    out.say(f"{len(found.runs)} runs of {len(found.sources)} sources")
    out.rows(
        [
            {
                "first": run.first,
                "last": run.last,
                "rows": run.rows,
                "source": ", ".join(run.sources)
                + (f" ({run.switches} turns)" if run.switches else ""),
            }
            for run in found.runs
        ],
        right=("rows",),
    )
    if not found.overlaps:
        out.say("nothing overlaps")
        return
    out.text("\n")
    out.say(f"{len(found.overlaps)} overlap{'' if len(found.overlaps) == 1 else 's'}")
    out.rows(
        [
            {
                "first": overlap.first,
                "last": overlap.last,
                "one": overlap.one,
                "rows": overlap.rows_of_one,
                "other": overlap.other,
                "its rows": overlap.rows_of_other,
                "same times": overlap.same_times,
            }
            for overlap in found.overlaps
        ],
        right=("rows", "its rows", "same times"),
    )
