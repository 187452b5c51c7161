"""`pond show`: the transactions of the pond, and what each of them did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from millpond.cli.output import human_size, short_time

if TYPE_CHECKING:
    from millpond.cli.context import Context
    from millpond.steward.control.journal import Change, Entry

_USUAL: Final = 20
_SHOWN: Final = 3


@click.command("show")
@click.argument("txn", type=click.IntRange(min=1), required=False)
@click.option("-n", "--limit", type=click.IntRange(min=1), default=_USUAL, show_default=True)
@click.option("--all", "is_all", is_flag=True, help="Show all transactions.")
@click.pass_obj
def command(context: Context, *, txn: int | None, limit: int, is_all: bool) -> None:
    """Show the transactions, newest first; or all that transaction TXN did.

    \b
    Examples:
      pond show
      pond show 17
    """
    from millpond.steward.control.journal import journal

    pond = context.open_pond()
    tree = context.read().tree
    if txn is not None:
        _show_one(context, journal(pond, tree), txn)
        return
    entries = journal(pond, tree, most=None if is_all else limit)
    if context.as_json:
        context.out.rows([_facts(entry) for entry in entries])
        return
    lines = [
        {"txn": e.txn_seq, "time": e.time, "changed": _summary(e), "command": e.command}
        for e in entries
    ]
    context.out.rows(lines, show={"time": short_time}, right=("txn",))
    if not entries:
        context.out.say("there are no transactions yet")
    elif len(entries) < tree.txn_seq and not is_all:
        context.out.say(f"{tree.txn_seq} in all: pond show --all")


def _show_one(context: Context, entries: list[Entry], txn: int) -> None:
    entry = next((each for each in entries if each.txn_seq == txn), None)
    if entry is None:
        from millpond.base.errors import PathNotFoundError

        newest = entries[0].txn_seq if entries else 0
        raise PathNotFoundError(
            f"there is no transaction {txn}",
            path="/",
            hint=f"the newest one is {newest}" if newest else "there are none yet",
        )
    if context.as_json:
        context.out.facts(_facts(entry))
        return
    facts = {"transaction": entry.txn_seq, "time": entry.time, "command": entry.command}
    context.out.facts({**facts, **entry.said.get("environment", {})}, show={"time": short_time})
    context.out.text("\n")
    lines = [
        {
            "change": change.kind,
            "type": change.row.entry_type,
            "size": change.row.size,
            "version": change.row.version,
            "path": _path(change),
        }
        for change in entry.changes
    ]
    context.out.rows(lines, show={"size": human_size}, right=("size", "version"))


def _summary(entry: Entry) -> str:
    """The first few changes."""
    shown = [f"{change.kind} {_path(change)}" for change in entry.changes[:_SHOWN]]
    more = len(entry.changes) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _path(change: Change) -> str:
    return change.path if change.origin is None else f"{change.origin} -> {change.path}"


def _facts(entry: Entry) -> dict[str, Any]:
    """A transaction for programs."""
    return {
        "txn": entry.txn_seq,
        "time": entry.time,
        "command": entry.command,
        "message": entry.said.get("message"),
        "args": entry.said.get("args"),
        "environment": entry.said.get("environment"),
        "txn_id": entry.said.get("txn_id"),
        "changes": [
            {
                "change": change.kind,
                "path": change.path,
                "origin": change.origin,
                "type": change.row.entry_type,
                "version": change.row.version,
                "size": change.row.size,
                "node_id": change.row.node_id,
            }
            for change in entry.changes
        ],
    }
