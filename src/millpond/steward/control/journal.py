"""What each transaction did, out of the rows of the OpLog: they stay when commits leave its log."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from millpond.fs.entry import MOVED_TO, ROOT, Row, from_micros
from millpond.fs.oplog.persistence import state_of
from millpond.fs.paths import join
from millpond.steward.control.records import transactions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from millpond.fs.tree import Tree
    from millpond.steward.control.records import Transaction
    from millpond.steward.pond import Pond

Kind = Literal["made", "written", "changed", "moved", "removed", "restored"]


@dataclass(frozen=True, slots=True)
class Change:
    """What a transaction did to one node."""

    kind: Kind
    path: str
    """As it was when the transaction was over."""
    row: Row
    origin: str | None = None
    """Where a node was that was moved."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One transaction."""

    txn_seq: int
    time: datetime
    changes: tuple[Change, ...]
    said: Mapping[str, Any] = field(default_factory=dict)
    """What it said of itself; nothing if that has left the log."""

    @property
    def command(self) -> str:
        """The command line, or the message."""
        return command_of(self.said)


def command_of(said: Mapping[str, Any]) -> str:
    """The command line, or the message, of a transaction.

    >>> command_of({"message": "mkdir", "args": ["mkdir", "/a b"]})
    "mkdir '/a b'"
    """
    args = said.get("args")
    return shlex.join(map(str, args)) if args else str(said.get("message") or "")


def journal(pond: Pond, tree: Tree, *, most: int | None = None) -> list[Entry]:
    """The transactions up to a tree, newest first."""
    rows = _Rows(tree)
    seqs = sorted(rows.by_seq, reverse=True)[:most]
    said = _said(pond, tree, set(seqs))
    return [
        Entry(
            seq,
            from_micros(rows.by_seq[seq][0].timestamp),
            tuple(sorted(rows.changes(seq), key=lambda change: change.path)),
            said.get(seq, {}),
        )
        for seq in seqs
    ]


def _said(pond: Pond, tree: Tree, seqs: set[int]) -> dict[int, Mapping[str, Any]]:
    """What transactions said of themselves: in the log, or else to the control table."""
    found: dict[int, Mapping[str, Any]] = {}
    for version in range(tree.version, -1, -1):
        said = pond.oplog.log.said(version)
        if said is None or found.keys() >= seqs:
            break
        if said.get("txn_seq") in seqs:
            found[said["txn_seq"]] = said
    if found.keys() >= seqs:
        return found
    for each in transactions(pond.control.records()):
        if each.txn_seq in seqs and each.txn_seq not in found and each.cli_args:
            found[each.txn_seq] = said_in_control(each)
    return found


def said_in_control(transaction: Transaction) -> dict[str, Any]:
    """What a transaction said of itself, as the control table has it."""
    args = transaction.cli_args
    what = {"args": args} if isinstance(args, list) else {"message": args}
    return {**what, "environment": dict(transaction.environment)}


class _Rows:
    """All rows of a tree, by transaction, and where each directory was when."""

    def __init__(self, tree: Tree) -> None:
        self.by_seq: dict[int, list[Row]] = {}
        self._before: dict[tuple[str, str, int], Row] = {}
        self._directories: dict[str, list[Row]] = {}
        for part in state_of(tree).files:
            for rows in tree.partition(part).by_node.values():
                self._take(rows)

    def _take(self, rows: Iterable[Row]) -> None:
        before: Row | None = None
        for row in rows:
            self.by_seq.setdefault(row.txn_seq, []).append(row)
            if before is not None:
                self._before[row.part_id, row.node_id, row.txn_seq] = before
            if row.entry_type.is_directory and MOVED_TO not in row.attributes:
                self._directories.setdefault(row.node_id, []).append(row)
            before = row

    def changes(self, seq: int) -> Iterable[Change]:
        """What one transaction did."""
        rows = self.by_seq[seq]
        gone = {row.node_id: row for row in rows if row.removed and MOVED_TO in row.attributes}
        for row in rows:
            if row.removed and MOVED_TO in row.attributes:
                continue
            yield self._change(row, gone.get(row.node_id))

    def _change(self, row: Row, gone: Row | None) -> Change:
        seq = row.txn_seq
        path = self.path(row.part_id, row.name, seq)
        if row.removed:
            return Change("removed", path, row)
        if gone is not None:
            return Change("moved", path, row, self._origin(gone, seq))
        before = self._before.get((row.part_id, row.node_id, seq))
        if before is None:
            return Change("made", path, row)
        if before.removed:
            return Change("restored", path, row)
        if before.name != row.name:
            return Change("moved", path, row, self._origin(before, seq))
        return Change("written" if before.version != row.version else "changed", path, row)

    def _origin(self, row: Row, seq: int) -> str:
        return self.path(row.part_id, row.name, seq - 1)

    def path(self, part_id: str, name: str, seq: int) -> str:
        """Where something was after a transaction."""
        names = [name]
        while part_id != ROOT:
            rows = [row for row in self._directories.get(part_id, ()) if row.txn_seq <= seq]
            if not rows:
                names.append("?")
                break
            last = max(rows, key=lambda row: row.txn_seq)
            names.append(last.name)
            part_id = last.part_id
        return join(*reversed(names))
