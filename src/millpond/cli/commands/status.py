"""`pond status`: where the pond is, what is in it, and whether something is unfinished."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millpond.cli.output import human_size, short_time

if TYPE_CHECKING:
    from millpond.cli.context import Context
    from millpond.cli.output import Show
    from millpond.fs.tree import Tree


@click.command("status")
@click.pass_obj
def command(context: Context) -> None:
    """Show the pond's place and identity, its nodes and size, the last transaction, open ones."""
    from millpond.fs.walk import walk
    from millpond.steward.control.journal import command_of, said_in_control

    pond = context.open_pond()
    tree = context.read().tree
    identity = pond.identity()
    rows = [found.chain[-1] for found in walk(tree)]
    kinds = Counter(row.entry_type.value for row in rows)
    waiting = [
        {"txn_id": t.txn_id, "since": t.begun, "command": command_of(said_in_control(t))}
        for t in pond.control.incomplete()
    ]
    facts: dict[str, Any] = {
        "location": pond.location,
        "id": identity.get("pond.id"),
        "born": identity.get("pond.born"),
        "host": identity.get("pond.host"),
        "user": identity.get("pond.user"),
        "transactions": tree.txn_seq,
        **_last(tree),
        "oplog_version": tree.version,
        "nodes": len(rows),
        "types": dict(sorted(kinds.items())),
        "size": sum(row.size or 0 for row in rows),
        "stored": _stored(pond.location),
        "unfinished": waiting,
    }
    if context.as_json:
        context.out.facts(facts)
        return
    show: Show = {
        "born": _plain_time,
        "last time": short_time,
        "size": human_size,
        "stored": human_size,
    }
    facts["types"] = ", ".join(f"{count} {kind}" for kind, count in facts["types"].items()) or None
    facts["unfinished"] = len(waiting) or "none"
    context.out.facts({name.replace("_", " "): v for name, v in facts.items()}, show=show)
    for each in waiting:
        context.out.say(f"unfinished: {each['txn_id']} since {each['since']}: {each['command']}")
    if waiting:
        context.out.say("pond recover finishes what crashed, and leaves alone what is at work")


def _plain_time(text: str) -> str:
    return text[:19].replace("T", " ")


def _last(tree: Tree) -> dict[str, Any]:
    """The last transaction."""
    from millpond.fs.entry import from_micros
    from millpond.fs.oplog.persistence import state_of
    from millpond.steward.control.journal import command_of

    said = state_of(tree).last
    if not tree.txn_seq:
        return {"last_time": None, "last_command": None}
    # Maintenance makes commits, too, so the rows tell better when something happened.
    rows = (rows[-1] for part in tree.known().values() for rows in part.by_node.values())
    times = (row.timestamp for row in rows if row.txn_seq == tree.txn_seq)
    time = from_micros(max(times, default=said["timestamp"]))
    return {"last_time": time, "last_command": command_of(said)}


def _stored(location: str) -> int | None:
    """The bytes of all files of a pond on this machine, older versions among them."""
    if "://" in location:
        return None
    return sum(
        (Path(directory) / name).lstat().st_size
        for directory, _, names in os.walk(location)
        for name in names
    )
