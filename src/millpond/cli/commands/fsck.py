"""`pond fsck`: is everything that is stored what was written?"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from millpond.cli.context import Context
    from millpond.steward.keeping.fsck import Report

DAMAGED: Final = 10
"""The exit code, as for errors about damaged data."""
ORPHAN: Final = "orphan"
"""What was compacted, or left by a crash: no damage, and often much of it."""


@click.command("fsck")
@click.option("--root", "root_only", is_flag=True, help="Print the content root alone.")
@click.pass_obj
def command(context: Context, *, root_only: bool) -> int:
    """Check every object of the pond against the hash that was noted when it was written.

    What is damaged or missing is named by its path and version, and the exit code is 10. Nothing is
    changed, and a pond that can't be opened any more can be checked, too. The content root is a
    hash over all names and contents: equal ponds have equal ones.

    \b
    Examples:
      pond fsck
      pond fsck --json
      pond fsck --root
    """
    from millpond.cli.doing import doing
    from millpond.kernel.paths import table_location
    from millpond.steward.keeping.fsck import fsck
    from millpond.steward.pond import Pond

    pond = Pond(table_location(context.place), settings=context.settings)
    with doing(context, "checking") as tell:
        found = fsck(pond, progress=tell)
    if context.as_json:
        context.out.facts(_facts(found))
    elif root_only and found.root is not None:
        context.out.text(f"{found.root}\n")
    else:
        _show(context, found)
    return 0 if found.is_sound else DAMAGED


def _facts(found: Report) -> dict[str, Any]:
    return {
        "sound": found.is_sound,
        "root": found.root,
        "objects": found.objects,
        "bytes_read": found.bytes_read,
        "nodes": found.nodes,
        "versions": found.versions,
        "last_txn_seq": found.last_txn_seq,
        "findings": [asdict(finding) for finding in found.findings],
    }


def _show(context: Context, found: Report) -> None:
    from millpond.cli.output import counted, human_size

    out = context.out
    out.rows(
        [
            {
                "kind": finding.kind,
                "path": finding.path,
                "version": finding.version,
                "object": finding.object,
                "message": finding.message,
            }
            for finding in found.findings
            if finding.kind != ORPHAN
        ],
        right=("version",),
    )
    orphans = [finding for finding in found.findings if finding.kind == ORPHAN]
    if orphans:
        size = human_size(sum(finding.size for finding in orphans))
        what = f"{counted(len(orphans), 'object')} ({size}) {'is' if len(orphans) == 1 else 'are'}"
        out.say(f"{what} not needed by any version; --json shows the names")
        out.say("pond maintain --vacuum removes them when they are old enough")
    checked = f"{counted(found.objects, 'object')}, {human_size(found.bytes_read)} read"
    if found.is_sound:
        out.facts({"content root": found.root})
        is_one = found.nodes == 1 and found.versions == 1
        nodes = f"{counted(found.nodes, 'node')} in {counted(found.versions, 'version')}"
        out.say(f"{nodes} {'is' if is_one else 'are'} sound ({checked})")
    else:
        damaged = (
            f"{counted(len(found.damage), 'object')} {'is' if len(found.damage) == 1 else 'are'}"
        )
        out.say(f"{damaged} damaged or missing ({checked})")
        out.say("restore them from a backup, or an older version: pond restore PATH@v1")
