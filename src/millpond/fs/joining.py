"""Two transactions that both create a path: the later one uses what the earlier one made.

This holds for directories that may exist (`mkdir -p`, `exist_ok`) and for the first append to a
series. Everything else that takes the same name is a conflict, which `rebase` reports.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from millpond.fs.entry import MOVED_FROM, MOVED_TO, EntryType
from millpond.fs.working import Draft, Working

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.fs.entry import Row
    from millpond.fs.tree import Tree

FACTS: Final = (
    *("name", "min_override", "max_override", "time_column"),
    *("factory", "config", "extended_attributes"),
)
"""Fields that hold for all versions of a node."""


def join_existing(work: Working, onto: Tree) -> tuple[Working, Mapping[str, Row]]:
    """Return the drafts with nodes of `onto` in place of new ones that have the same path.

    Also return the row of each existing node, by the id of the new one that it replaces.
    """
    joined = _directories(work, onto)
    drafts = [
        _below(draft, joined) for draft in work.drafts.values() if draft.row.node_id not in joined
    ]
    for number, draft in enumerate(drafts):
        other = _same(draft, work, onto) if draft.row.entry_type.is_appended else None
        if other is not None:
            joined[draft.row.node_id] = other
            drafts[number] = _appended(draft, other)
    if not joined:
        return work, {}
    result = Working(work.base)
    for draft in drafts:
        result.note(draft)
    return result, joined


def _directories(work: Working, onto: Tree) -> dict[str, Row]:
    """Return the existing directory for each new one that may exist, by the id of the new one."""
    drafts = [d for d in work.drafts.values() if d.row.entry_type is EntryType.DIRECTORY]
    joined: dict[str, Row] = {}
    for draft in sorted(drafts, key=lambda draft: len(draft.parents)):
        other = _same(_below(draft, joined), work, onto)
        if other is not None:
            joined[draft.row.node_id] = other
    return joined


def _same(draft: Draft, work: Working, onto: Tree) -> Row | None:
    """Return the node of `onto` that a new node can be merged with."""
    row = draft.row
    if not draft.is_append or draft.base is not None or row.removed:
        return None
    other = onto.child(row.part_id, row.name)
    if other is None or other.node_id == row.node_id or other.entry_type is not row.entry_type:
        return None
    # A draft about the other node means that this transaction knows it, and makes room.
    return None if (other.part_id, other.node_id) in work.drafts else other


def _below(draft: Draft, joined: Mapping[str, Row]) -> Draft:
    """Return a draft with its directory, and all above it, replaced by existing ones."""
    if not joined:
        return draft
    row = draft.row
    changed: dict[str, Any] = {}
    attributes = row.attributes
    if MOVED_TO in attributes:
        ids = attributes[MOVED_TO].split("/")
        changed[MOVED_TO] = "/".join(_existing(node_id, joined) for node_id in ids)
    if MOVED_FROM in attributes:
        changed[MOVED_FROM] = _existing(attributes[MOVED_FROM], joined)
    if any(attributes[name] != value for name, value in changed.items()):
        row = row.with_attributes(**changed)
    if row.part_id in joined:
        row = replace(row, part_id=joined[row.part_id].node_id)
    parents = tuple(joined.get(above.node_id, above) for above in draft.parents)
    return replace(draft, row=row, parents=parents)


def _existing(node_id: str, joined: Mapping[str, Row]) -> str:
    return joined[node_id].node_id if node_id in joined else node_id


def _appended(draft: Draft, other: Row) -> Draft:
    """Return the first version of a new series as the next version of an existing one.

    Its base is the existing series without any facts, so that `rebase` compares those that both
    transactions have set.
    """
    row = replace(draft.row, node_id=other.node_id, version=other.version + 1)
    nothing: dict[str, Any] = {**dict.fromkeys(FACTS), "name": other.name}
    blank = replace(other, **nothing)
    return replace(draft, row=row, base=blank)
