"""Two moments of a pond: which nodes came, went, were changed or moved. Nodes have identity, so a
directory that was moved is one change, whatever is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from millpond.fs.paths import join, parts
from millpond.fs.resolve import try_resolve
from millpond.fs.walk import walk

if TYPE_CHECKING:
    from millpond.fs.resolve import Located
    from millpond.steward.scope import Scope

Kind = Literal["added", "removed", "changed", "moved"]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one node."""

    change: Kind
    path: str
    type: str
    old_path: str | None = None
    """Of a node that was moved."""
    old_version: int | None = None
    new_version: int | None = None
    what: str | None = None
    """Of a change that made no version: what it was about."""


def compare_trees(older: Scope, newer: Scope, prefix: str = "/") -> list[Change]:
    """The changes from one scope to another below a path, in the order of paths."""
    before, after = _nodes(older, prefix), _nodes(newer, prefix)
    found: list[Change] = []
    for node, was in before.items():
        row = was.row
        assert row is not None
        if node not in after:
            found.append(Change("removed", was.path, str(row.entry_type), old_version=row.version))
    for node, now in after.items():
        row = now.row
        assert row is not None
        known = before.get(node)
        if known is None:
            found.append(Change("added", now.path, str(row.entry_type), new_version=row.version))
        else:
            found += _changes(known, now)
    return sorted(found, key=lambda change: (change.path, change.change))


def _nodes(scope: Scope, prefix: str) -> dict[str, Located]:
    """All nodes below a path, by their ids; where there was no such directory, none."""
    scope.check()
    top = try_resolve(scope.view, prefix)
    if top is None:
        return {}
    plain = join(*parts(prefix))
    inside = walk(scope.view, plain) if top.entry_type.is_directory else ()
    found = {located.node_id: located for located in inside}
    return found if not top.chain else {top.node_id: top, **found}


def _changes(was: Located, now: Located) -> list[Change]:
    old, new = was.row, now.row
    assert old is not None
    assert new is not None
    kind = str(new.entry_type)
    versions = (old.version, new.version)
    if (old.part_id, old.name) != (new.part_id, new.name):
        return [Change("moved", now.path, kind, was.path, *versions)]
    if old.version != new.version:
        return [Change("changed", now.path, kind, None, *versions)]
    facts = ("min_override", "max_override", "config", "factory", "time_column")
    other = [name for name in facts if getattr(old, name) != getattr(new, name)]
    if other:
        return [Change("changed", now.path, kind, None, *versions, ", ".join(other))]
    return []
