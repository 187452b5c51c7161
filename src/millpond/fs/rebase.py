"""Two writers: which changes can be put behind those of others, and which are in their way.

Writers are compared node by node. Who touched other nodes goes on; who appended to a node that
others appended to goes on behind them; everything else is a `WriteConflictError` with the path.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millpond.base.errors import WriteConflictError
from millpond.fs.entry import MOVED_TO, EntryType
from millpond.fs.working import Draft, Working

if TYPE_CHECKING:
    from millpond.fs.entry import Row
    from millpond.fs.tree import Tree

AGAIN = "look at what is there now, and try again"


def rebase(work: Working, onto: Tree) -> Working:
    """The same changes on a newer tree."""
    made = Working(onto)
    for key, draft in work.drafts.items():
        _check_parents(draft, onto)
        made.drafts[key] = _rebased(draft, onto)
    for key, draft in work.drafts.items():
        _check_name(draft, made)
        if draft.row.removed and draft.row.entry_type is EntryType.DIRECTORY:
            _check_untouched(draft, work.base, onto)
        del key
    return made


def _check_parents(draft: Draft, onto: Tree) -> None:
    for above in draft.parents:
        now = onto.latest(above.part_id, above.node_id)
        if now is not None and now.removed and MOVED_TO not in now.attributes:
            raise WriteConflictError(
                f"transaction {now.txn_seq} removed {above.name}, where {draft.path} is",
                path=draft.path,
                txn_seq=now.txn_seq,
                hint=AGAIN,
            )


def _rebased(draft: Draft, onto: Tree) -> Draft:
    now = onto.latest(draft.row.part_id, draft.row.node_id)
    if now == draft.base:
        return draft
    assert now is not None
    if draft.is_append and draft.base is not None and _was_only_appended(draft.base, now, onto):
        row = replace(draft.row, version=now.version + 1, name=now.name)
        return replace(draft, row=row, base=now)
    raise WriteConflictError(
        f"transaction {now.txn_seq} has {_deed(now, draft.base)} {draft.path} meanwhile",
        path=draft.path,
        txn_seq=now.txn_seq,
        hint=AGAIN,
    )


def _was_only_appended(base: Row, now: Row, onto: Tree) -> bool:
    rows = onto.history(now.part_id, now.node_id)
    return not any(row.removed for row in rows if row.txn_seq > base.txn_seq)


def _deed(now: Row, base: Row | None) -> str:
    if now.removed:
        return "moved" if MOVED_TO in now.attributes else "removed"
    if base is None or now.version == base.version:
        return "changed"
    return "written"


def _check_name(draft: Draft, made: Working) -> None:
    """A name that this transaction gives may have been given by another one, too."""
    if draft.row.removed:
        return
    other = made.base.children(draft.row.part_id).get(draft.row.name)
    if other is None or other.node_id == draft.row.node_id:
        return
    if (other.part_id, other.node_id) in made.drafts:  # it is taken away by this transaction
        return
    raise WriteConflictError(
        f"transaction {other.txn_seq} has put a {other.entry_type} at {draft.path} meanwhile",
        path=draft.path,
        txn_seq=other.txn_seq,
        hint=AGAIN,
    )


def _check_untouched(draft: Draft, base: Tree, onto: Tree) -> None:
    """Nobody may have put something into a directory that is removed."""
    todo = [draft.row.node_id]
    while todo:
        part = todo.pop()
        newest = onto.partition(part).newest
        if newest > base.txn_seq:
            raise WriteConflictError(
                f"transaction {newest} has changed what is in {draft.path} meanwhile",
                path=draft.path,
                txn_seq=newest,
                hint=AGAIN,
            )
        rows = onto.children(part).values()
        todo += [row.node_id for row in rows if row.entry_type is EntryType.DIRECTORY]
