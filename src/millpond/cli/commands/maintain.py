"""`pond maintain`: compaction, checkpoints, and the removal of what nothing needs."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from millpond.cli.context import Context
    from millpond.steward.keeping.maintain import Maintenance

_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds", "": "days"}
_LENGTH: Final = re.compile(r"(\d+(?:\.\d+)?)([dhms]?)")


class _Length(click.ParamType[timedelta]):
    """A length of time: `7d`, `12h`, `30m`; without a unit, days."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """The length."""
        if isinstance(value, timedelta):
            return value
        found = _LENGTH.fullmatch(str(value).strip().lower())
        if found is None:
            self.fail(f"{value!r} is no length of time; write it like 7d, 12h or 30m", param, ctx)
        return timedelta(**{_UNITS[found[2]]: float(found[1])})


@click.command("maintain")
@click.option("--vacuum", is_flag=True, help="Delete what nothing needs; else it is only told.")
@click.option(
    "--retention",
    type=_Length(),
    help="Keep for so long what nothing needs; else what maintain.retention_days says.",
)
@click.option("--no-compact", "compact", flag_value=False, default=True, help="Compact nothing.")
@click.pass_obj
def command(context: Context, *, vacuum: bool, retention: timedelta | None, compact: bool) -> None:
    """Compact small files, write checkpoints, and tell what could be deleted.

    Content stays what it is, and so does every version that can be read; it can be done at any
    time, while others write. With --vacuum, what nothing needs is deleted, if it is older than the
    retention: leftovers of crashes and files that were compacted. Readers on other machines that
    began before may still need those.

    \b
    Examples:
      pond maintain
      pond maintain --vacuum
      pond maintain --vacuum --retention 12h
    """
    from millpond.cli.doing import doing

    with doing(context, "looking after the pond") as tell:
        found = context.open_pond().maintain(
            dry_run=not vacuum, retention=retention, compact=compact, progress=tell
        )
    if context.as_json:
        context.out.facts(_facts(found))
    else:
        _show(context, found)


def _facts(found: Maintenance) -> dict[str, Any]:
    return {
        "compacted": [asdict(item) for item in found.compacted],
        "checkpoints": list(found.checkpoints),
        "recovered": asdict(found.synced),
        "deleted": found.is_deleted,
        "before": found.before,
        "garbage": [asdict(item) for item in found.garbage],
        "garbage_bytes": found.bytes,
        "swept": found.swept,
    }


def _show(context: Context, found: Maintenance) -> None:
    from millpond.cli.output import human_size, short_time

    out = context.out
    if not found.synced.is_clean:
        out.say("finished what a crash had left; pond control recent tells more")
    for item in found.compacted:
        out.say(f"compacted {item.path}: {item.before} files are {item.after} now")
    if found.checkpoints:
        out.say(f"checkpoints: {', '.join(found.checkpoints)}")
    if not (found.compacted or found.checkpoints):
        out.say("nothing was to be compacted")
    counts = found.counts()
    rows = [
        {"garbage": kind, "objects": count, "size": found.sizes.get(kind, 0)}
        for kind, count in sorted(counts.items())
    ]
    out.rows(rows, show={"size": human_size}, right=("objects",))
    done = "deleted" if found.is_deleted else "could be deleted: pond maintain --vacuum"
    what = f"{len(found.garbage)} objects, {human_size(found.bytes)}" if rows else "nothing"
    out.say(f"{what} older than {short_time(found.before)} {done if rows else 'is garbage'}")
