"""Two writers: which changes can be put behind those of others, and which are in their way.

Writers are compared node by node. Changes of different nodes never conflict, appends to one node
follow each other, and a path that both create is shared where `joining` allows it. Everything else
is a `WriteConflictError` with the path.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import WriteConflictError
from millpond.fs.entry import MOVED_TO, REARRANGED, ROOT, WHOLE, EntryType
from millpond.fs.joining import FACTS, join_existing
from millpond.fs.working import Draft, Working

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.fs.entry import Row
    from millpond.fs.tree import Tree

AGAIN: Final = "look at what is there now, and try again"


def rebase(work: Working, onto: Tree) -> Working:
    """The same changes on a newer tree."""
    work, joined = join_existing(work, onto)
    made = Working(onto)
    made.joined = joined
    rearranged: dict[str, Row] = {}
    for draft in work.drafts.values():
        found = _rebased(draft, onto)
        if draft.base is not None and found.base is not None and found.base != draft.base:
            rearranged[draft.row.node_id] = found.base
        made.note(found)
    for draft in list(made.drafts.values()):
        now = rearranged.get(draft.row.node_id)
        if now is not None:  # also where it was moved to
            made.note(replace(draft, row=_with_table(draft.row, now)))
    drafts = made.drafts.values()
    placed = {draft.row.node_id: draft for draft in drafts if not draft.row.removed}
    for draft in drafts:
        _check_way(draft, made, placed)
        _check_name(draft, made)
        if draft.row.removed and draft.row.entry_type is EntryType.DIRECTORY:
            _check_untouched(draft, work.base, onto)
    return made


# The node itself


def _rebased(draft: Draft, onto: Tree) -> Draft:
    now = onto.latest(draft.row.part_id, draft.row.node_id)
    if now == draft.base:
        return draft
    assert now is not None
    if draft.is_append and draft.base is not None and _was_there(draft.base, now, onto):
        facts = {name: _fact(name, draft, draft.base, now) for name in FACTS}
        row = replace(draft.row, version=now.version + 1, **facts)
        return replace(draft, row=row, base=now)
    if draft.base is not None and _content(now) == _content(draft.base):
        return replace(draft, base=now)  # maintenance has written its files anew, and nothing else
    raise _conflict(f"has {_deed(now, draft.base)} {draft.path} meanwhile", draft, now)


def _content(row: Row) -> Row:
    """A row without what maintenance changes."""
    plain = row.with_attributes(**{REARRANGED: None})
    return replace(plain, txn_seq=0, timestamp=0, delta_version=None, staged_commit=None)


def _with_table(row: Row, other: Row) -> Row:
    """A row with the version of the table that another one names."""
    return replace(row, delta_version=other.delta_version, staged_commit=other.staged_commit)


def _was_there(base: Row, now: Row, onto: Tree) -> bool:
    """Whether a node was never gone since, so that all that happened is still behind it."""
    rows = onto.history(now.part_id, now.node_id)
    return not any(row.removed for row in rows if row.txn_seq > base.txn_seq)


def _fact(name: str, draft: Draft, base: Row, now: Row) -> Any:
    mine, before, theirs = (
        getattr(row.with_attributes(**{WHOLE: None}), name) for row in (draft.row, base, now)
    )
    if mine in (before, theirs):
        return theirs
    if theirs == before:
        return mine
    if name == "time_column":
        said = f"has given {draft.path} the time column {theirs!r} meanwhile, not {mine!r}"
        raise _conflict(said, draft, now)
    raise _conflict(f"has changed the {name} of {draft.path}, too", draft, now)


def _deed(now: Row, base: Row | None) -> str:
    if now.removed:
        return "moved" if MOVED_TO in now.attributes else "removed"
    if base is None or now.version == base.version:
        return "changed"
    return "written"


# The directories above it


def _check_way(draft: Draft, made: Working, placed: Mapping[str, Draft]) -> None:
    """What is above a node must be there, wherever others have moved it, and not be in the node."""
    way = _ids(draft.parents)
    seen = {draft.row.node_id}
    moved: Row | None = None
    while len(way) > 1:
        node = way.pop()
        if node in seen:
            raise _conflict(f"has moved what is above {draft.path} into it", draft, moved)
        seen.add(node)
        if node in placed:
            way = _ids(placed[node].parents)
            continue
        row = made.base.latest(way[-1], node)
        while row is not None and row.removed and MOVED_TO in row.attributes:
            moved = row
            way = [ROOT, *filter(None, row.attributes[MOVED_TO].split("/"))]
            row = made.base.latest(way[-1], node)
        if row is not None and not row.removed:
            continue
        if (way[-1], node) in made.drafts:  # removed by this transaction, with all that is in it
            return
        name = row.name if row is not None else node
        raise _conflict(f"has removed {name}, where {draft.path} is", draft, row)


def _ids(parents: tuple[Row, ...]) -> list[str]:
    return [ROOT, *(row.node_id for row in parents)]


# Names, and what is below


def _check_name(draft: Draft, made: Working) -> None:
    """A name that this transaction gives may have been given by another one, too."""
    if draft.row.removed:
        return
    part, name = draft.row.part_id, draft.row.name
    other = made.base.child(part, name)
    if other is None or other.node_id == draft.row.node_id:
        return
    kept = made.latest(part, other.node_id)
    if kept is None or kept.removed or kept.name != name:  # this transaction makes room
        return
    raise _conflict(f"has put a {other.entry_type} at {draft.path} meanwhile", draft, other)


def _check_untouched(draft: Draft, base: Tree, onto: Tree) -> None:
    """Nobody may have put something into a directory that is removed."""
    if MOVED_TO in draft.row.attributes:
        return
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


def _conflict(what: str, draft: Draft, theirs: Row | None) -> WriteConflictError:
    seq = None if theirs is None else theirs.txn_seq
    who = "another transaction" if seq is None else f"transaction {seq}"
    return WriteConflictError(f"{who} {what}", path=draft.path, txn_seq=seq, hint=AGAIN)
