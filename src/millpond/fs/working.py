"""`Working`: a tree with changes on top that nobody else sees yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millpond.fs.entry import MOVED_FROM, MOVED_TO, WHOLE

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
    """Whether it adds to what others have made: a version of a series, a directory that may exist.
    """
    parents: tuple[Row, ...]
    """The directories down to the one that lists it."""
    path: str


class Working:
    """The changes of one transaction; reads see them, and the tree below stays as it is."""

    def __init__(self, base: Tree) -> None:
        self.base = base
        self.drafts: dict[tuple[str, str], Draft] = {}
        self.joined: Mapping[str, Row] = {}
        """Existing nodes that took the place of new ones, by the ids of the new ones."""
        self._nodes: dict[str, dict[str, None]] = {}
        """The nodes with drafts in a directory."""
        self._names: dict[str, dict[str, str]] = {}
        """The names that drafts give in a directory, and the nodes that have them."""
        self._children: dict[str, Mapping[str, Row]] = {}

    def __len__(self) -> int:
        return len(self.drafts)

    def put(self, row: Row, *, parents: tuple[Row, ...], path: str, is_append: bool = False) -> Row:
        """Note what becomes of a node; a second note about it takes the place of the first.

        The row says what it will be: it belongs to no transaction, and has no time, before that.
        """
        row = replace(row, txn_seq=0, timestamp=0)
        key = (row.part_id, row.node_id)
        earlier = self.drafts.get(key)
        base = earlier.base if earlier else self.base.latest(*key)
        # What replaces something stays so, whatever is appended to it afterwards.
        appends = is_append and (earlier is None or earlier.is_append)
        self.note(Draft(row, base, appends, parents, path))
        return row

    def note(self, draft: Draft) -> None:
        """Take in a draft; of what was made and removed by this transaction nothing is kept."""
        draft = self._sized(draft)
        row = draft.row
        key = (row.part_id, row.node_id)
        names = self._names.setdefault(row.part_id, {})
        earlier = self.drafts.pop(key, None)
        if earlier is not None and names.get(earlier.row.name) == row.node_id:
            del names[earlier.row.name]
        self._children.pop(row.part_id, None)
        self._nodes.get(row.part_id, {}).pop(row.node_id, None)
        if row.removed and draft.base is None and self._leaves_nothing(row):
            return
        self.drafts[key] = draft
        self._nodes.setdefault(row.part_id, {})[row.node_id] = None
        if not row.removed:
            names[row.name] = row.node_id

    def _sized(self, draft: Draft) -> Draft:
        """Return the draft of a series with the size of all its versions, which a listing shows."""
        row, base = draft.row, draft.base
        if not row.entry_type.is_appended or row.removed or row.size is None:
            return draft
        if row.version == row.begins_with:
            before = 0
        elif base is not None and base.version == row.version - 1 and not base.removed:
            before = base.whole_size or 0
        else:
            sizes = {r.version: r.size or 0 for r in self.history(row.part_id, row.node_id)}
            before = sum(sizes[v] for v in sizes if row.begins_with <= v < row.version)
        sized = row.with_attributes(**{WHOLE: before + row.size if before else None})
        return draft if sized == row else replace(draft, row=sized)

    def _leaves_nothing(self, row: Row) -> bool:
        """Whether a node that has gone was made here, and nothing that could come back is in it."""
        if MOVED_FROM in row.attributes:
            return False
        inside = (self.drafts[row.node_id, node].row for node in self._nodes.get(row.node_id, ()))
        return MOVED_TO in row.attributes or all(MOVED_TO in r.attributes for r in inside)

    def children(self, part_id: str) -> Mapping[str, Row]:
        """What is in a directory, by name, sorted."""
        mine = self._nodes.get(part_id)
        if not mine:
            return self.base.children(part_id)
        found = self._children.get(part_id)
        if found is None:
            rows = [r for r in self.base.children(part_id).values() if r.node_id not in mine]
            drafted = (self.drafts[part_id, node].row for node in mine)
            rows += [row for row in drafted if not row.removed]
            found = {row.name: row for row in sorted(rows, key=lambda row: row.name)}
            self._children[part_id] = found
        return found

    def child(self, part_id: str, name: str) -> Row | None:
        """What has a name in a directory."""
        node = self._names.get(part_id, {}).get(name)
        if node is not None:
            return self.drafts[part_id, node].row
        row = self.base.child(part_id, name)
        return None if row is None or (part_id, row.node_id) in self.drafts else row

    def removed(self, part_id: str) -> list[Row]:
        """What was removed from a directory, or moved out of it; what went last comes last."""
        below = self.base.partition(part_id).by_node
        mine = self._nodes.get(part_id, {})
        found = [rows[-1] for node, rows in below.items() if node not in mine]
        found = sorted((r for r in found if r.removed), key=lambda r: (r.txn_seq, r.node_id))
        drafted = (self.drafts[part_id, node].row for node in sorted(mine))
        return [*found, *(row for row in drafted if row.removed)]

    def latest(self, part_id: str, node_id: str) -> Row | None:
        """The last that is known of a node in a directory."""
        draft = self.drafts.get((part_id, node_id))
        return draft.row if draft else self.base.latest(part_id, node_id)

    def history(self, part_id: str, node_id: str) -> tuple[Row, ...]:
        """All rows of a node, oldest first; the last ones may be drafts."""
        mine = self._drafted(part_id, node_id)
        return (*self.written(part_id, node_id), *sorted(mine, key=lambda row: not row.removed))

    def written(self, part_id: str, node_id: str) -> tuple[Row, ...]:
        """The rows of a node that are not drafts, oldest first, wherever it is now."""
        places = dict.fromkeys([part_id, *(r.part_id for r in self._drafted(part_id, node_id))])
        known: dict[tuple[str, int], Row] = {}
        for place in places:
            for row in self.base.history(place, node_id):
                known[row.part_id, row.txn_seq] = row
        return tuple(sorted(known.values(), key=lambda row: (row.txn_seq, not row.removed)))

    def _drafted(self, part_id: str, node_id: str) -> list[Row]:
        """The drafts of a node: here, and where this transaction moved it from."""
        found: dict[str, Row] = {}
        place: str | None = part_id
        while place is not None and place not in found:
            draft = self.drafts.get((place, node_id))
            if draft is None:
                break
            found[place] = draft.row
            place = draft.row.attributes.get(MOVED_FROM)
        return list(found.values())

    def content(self, row: Row) -> bytes | None:
        """What was written inline with this row, or is to be."""
        return row.content if row.txn_seq == 0 else self.base.content(row)
