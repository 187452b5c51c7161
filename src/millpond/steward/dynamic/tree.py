"""`DynamicTree`: a tree in which directories of factories have the children that they compute.

Looking things up begins at the root, so the path of a directory is known when it is looked into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from blake3 import blake3

from millpond.base.ids import NodeId
from millpond.fs.entry import ROOT, EntryType, Row
from millpond.fs.paths import child

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.fs.tree import TreeLike
    from millpond.provider.factory import Entry


class Expanding(Protocol):
    """Who knows factories."""

    def entries(self, path: str, row: Row) -> Mapping[str, Entry]:
        """What is in a directory that a factory makes."""
        ...


class DynamicTree:
    """A tree, and what is computed in it; nothing is computed before it is looked at."""

    def __init__(self, base: TreeLike, expanding: Expanding) -> None:
        self.base = base
        self._expanding = expanding
        self._paths: dict[str, str] = {ROOT: "/"}
        self._roots: dict[str, Row] = {}
        """Directories of factories that are written down, by their ids."""
        self._entries: dict[str, Entry] = {}
        """What is computed, by its id."""
        self._rows: dict[str, dict[str, Row]] = {}
        """What is in computed directories, by their ids."""
        self._of: dict[str, Row] = {}

    def entry(self, node_id: str) -> Entry | None:
        """What is computed under an id; None if it is written down."""
        return self._entries.get(node_id)

    def children(self, part_id: str) -> Mapping[str, Row]:
        """What is in a directory, by name, sorted."""
        computed = self._computed(part_id)
        if computed is not None:
            return computed
        found = self.base.children(part_id)
        for name, row in found.items():
            if row.entry_type.is_directory:
                self._note(part_id, name, row)
        return found

    def child(self, part_id: str, name: str) -> Row | None:
        """What has a name in a directory."""
        computed = self._computed(part_id)
        if computed is not None:
            return computed.get(name)
        row = self.base.child(part_id, name)
        if row is not None and row.entry_type.is_directory:
            self._note(part_id, name, row)
        return row

    def latest(self, part_id: str, node_id: str) -> Row | None:
        """The last that is known of a node in a directory."""
        return self._of.get(node_id) or self.base.latest(part_id, node_id)

    def history(self, part_id: str, node_id: str) -> tuple[Row, ...]:
        """All rows of a node; one that is computed has one."""
        made = self._of.get(node_id)
        return self.base.history(part_id, node_id) if made is None else (made,)

    def content(self, row: Row) -> bytes | None:
        """What was written inline with this row."""
        return None if row.node_id in self._of else self.base.content(row)

    def _note(self, part_id: str, name: str, row: Row) -> None:
        self._paths[row.node_id] = child(self._paths.get(part_id, "/"), name)
        if row.entry_type is EntryType.DYNAMIC_DIRECTORY:
            self._roots[row.node_id] = row

    def _computed(self, part_id: str) -> dict[str, Row] | None:
        known = self._rows.get(part_id)
        if known is not None:
            return known
        entry = self._entries.get(part_id)
        if entry is not None:
            assert entry.entries is not None
            found = entry.entries()
        elif part_id in self._roots:
            found = self._expanding.entries(self._paths[part_id], self._roots[part_id])
        else:
            return None
        rows = {name: self._row(part_id, name, found[name]) for name in sorted(found)}
        self._rows[part_id] = rows
        return rows

    def _row(self, part_id: str, name: str, entry: Entry) -> Row:
        said = "\0".join((part_id, name, entry.factory, entry.identity))
        node_id = str(NodeId.from_digest(blake3(said.encode()).digest()))
        above = self._of.get(part_id) or self._roots.get(part_id)
        row = Row(
            part_id=part_id,
            node_id=node_id,
            name=name,
            entry_type=entry.kind,
            txn_seq=above.txn_seq if above is not None else 0,
            timestamp=above.timestamp if above is not None else 0,
            factory=entry.factory,
        )
        self._of[node_id] = row
        self._entries[node_id] = entry
        self._paths[node_id] = child(self._paths[part_id], name)
        return row
