"""`Working`: a tree with changes on top that nobody else sees yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.fs.entry import Row
    from millpond.fs.tree import Tree


@dataclass(frozen=True, slots=True)
class Draft:
    """A row that is to be written, and what it relies on."""

    row: Row
    base: Row | None
    """What the tree below says of the node in this directory; None if it is new there."""
    is_append: bool
    """Whether it adds a version behind those of others, instead of replacing one."""
    parents: tuple[Row, ...]
    """The directories down to the one that lists it."""
    path: str


class Working:
    """The changes of one transaction; reads see them, and the tree below stays as it is."""

    def __init__(self, base: Tree) -> None:
        self.base = base
        self.drafts: dict[tuple[str, str], Draft] = {}
        self._children: dict[str, dict[str, Row]] = {}

    def __len__(self) -> int:
        return len(self.drafts)

    def put(self, row: Row, *, parents: tuple[Row, ...], path: str, is_append: bool = False) -> Row:
        """Note what becomes of a node; a second note about it takes the place of the first."""
        key = (row.part_id, row.node_id)
        earlier = self.drafts.get(key)
        base = earlier.base if earlier else self.base.latest(*key)
        # What replaces something stays so, whatever is appended to it afterwards.
        appends = is_append and (earlier is None or earlier.is_append)
        if base is None and row.removed:
            self.drafts.pop(key, None)
        else:
            self.drafts[key] = Draft(row, base, appends, parents, path)
        self._children.pop(row.part_id, None)
        return row

    def children(self, part_id: str) -> Mapping[str, Row]:
        """What is in a directory, by name, sorted."""
        found = self._children.get(part_id)
        if found is not None:
            return found
        mine = {k[1]: d.row for k, d in self.drafts.items() if k[0] == part_id}
        below = self.base.children(part_id)
        if not mine:
            return below
        rows = [row for row in below.values() if row.node_id not in mine]
        rows += [row for row in mine.values() if not row.removed]
        found = {row.name: row for row in sorted(rows, key=lambda row: row.name)}
        self._children[part_id] = found
        return found

    def latest(self, part_id: str, node_id: str) -> Row | None:
        """The last that is known of a node in a directory."""
        draft = self.drafts.get((part_id, node_id))
        return draft.row if draft else self.base.latest(part_id, node_id)

    def history(self, part_id: str, node_id: str) -> tuple[Row, ...]:
        """All rows of a node, oldest first; the last ones may be drafts."""
        mine = [d.row for (_, node), d in self.drafts.items() if node == node_id]
        places = dict.fromkeys([part_id, *(row.part_id for row in mine)])
        known: dict[tuple[str, int], Row] = {}
        for place in places:
            for row in self.base.history(place, node_id):
                known[row.part_id, row.txn_seq] = row
        older = sorted(known.values(), key=lambda row: (row.txn_seq, not row.removed))
        return (*older, *sorted(mine, key=lambda row: not row.removed))

    def content(self, row: Row) -> bytes | None:
        """What was written inline with this row, or is to be."""
        return row.content if row.content is not None else self.base.content(row)
