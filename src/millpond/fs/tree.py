"""`Tree`: a pond pinned at one version. Directories are read when they are looked into.

A source gives the rows of a directory; which of them count is decided here, the same for every
persistence. Directories that were read are kept, and `hits` says how often that spared a reading.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from millpond.fs.entry import MOVED_FROM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millpond.fs.entry import Row


class RowSource(Protocol):
    """Where a tree's rows come from: one version of a persistence."""

    def rows(self, part_id: str) -> Iterable[Row]:
        """Everything that happened in a directory, without contents, in any order."""
        ...

    def content(self, row: Row) -> bytes | None:
        """What was written inline with this row; None if nothing was."""
        ...


class TreeLike(Protocol):
    """What resolving, walking and globbing need: a tree, or one with changes on top."""

    def children(self, part_id: str) -> Mapping[str, Row]:
        """What is in a directory, by name, sorted; later changes do not show in it."""
        ...

    def child(self, part_id: str, name: str) -> Row | None:
        """What has a name in a directory."""
        ...

    def latest(self, part_id: str, node_id: str) -> Row | None:
        """The last that is known of a node in a directory, also if it was removed."""
        ...

    def history(self, part_id: str, node_id: str) -> tuple[Row, ...]:
        """All rows of a node, oldest first, also from directories where it was before."""
        ...

    def content(self, row: Row) -> bytes | None:
        """What was written inline with this row."""
        ...


@dataclass(frozen=True)
class Partition:
    """All rows of one directory."""

    by_node: Mapping[str, tuple[Row, ...]]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Partition:
        """Rows in any order."""
        found: dict[str, list[Row]] = {}
        for row in sorted(rows, key=lambda row: row.txn_seq):
            found.setdefault(row.node_id, []).append(row)
        return cls({node: tuple(rows) for node, rows in found.items()})

    def extended(self, rows: Iterable[Row]) -> Partition:
        """With what happened later."""
        found, changed = dict(self.by_node), set()
        for row in sorted(rows, key=lambda row: row.txn_seq):
            found[row.node_id] = (*found.get(row.node_id, ()), row)
            changed.add(row.node_id)
        made = Partition(found)
        if "live" in self.__dict__:  # almost sorted already, which is quick to sort
            last = [row for row in self.live.values() if row.node_id not in changed]
            last += [found[node][-1] for node in changed if not found[node][-1].removed]
            made.__dict__["live"] = {row.name: row for row in sorted(last, key=_name)}
        return made

    @cached_property
    def live(self) -> dict[str, Row]:
        """What is there now, by name."""
        last = (rows[-1] for rows in self.by_node.values())
        return {row.name: row for row in sorted(last, key=_name) if not row.removed}

    @cached_property
    def newest(self) -> int:
        """The last transaction that did something here."""
        return max((rows[-1].txn_seq for rows in self.by_node.values()), default=0)


def _name(row: Row) -> str:
    return row.name


@dataclass(eq=False)
class Tree:
    """A pond as it was after one transaction; it never changes."""

    source: RowSource
    version: int
    """Of the persistence: maintenance makes versions, too."""
    txn_seq: int
    """The last transaction in it."""
    hits: int = 0
    misses: int = 0
    _parts: dict[str, Partition] = field(default_factory=dict, repr=False)

    def partition(self, part_id: str) -> Partition:
        """One directory, read once."""
        found = self._parts.get(part_id)
        if found is not None:
            self.hits += 1
            return found
        self.misses += 1
        found = self._parts[part_id] = Partition.of(self.source.rows(part_id))
        return found

    def keep(self, part_id: str, partition: Partition) -> None:
        """Take over a directory that is known not to have changed."""
        self._parts[part_id] = partition

    def known(self) -> Mapping[str, Partition]:
        """The directories that were read so far."""
        return self._parts

    def children(self, part_id: str) -> Mapping[str, Row]:
        """What is in a directory, by name, sorted."""
        return self.partition(part_id).live

    def child(self, part_id: str, name: str) -> Row | None:
        """What has a name in a directory."""
        return self.partition(part_id).live.get(name)

    def latest(self, part_id: str, node_id: str) -> Row | None:
        """The last that is known of a node in a directory."""
        rows = self.partition(part_id).by_node.get(node_id)
        return rows[-1] if rows else None

    def history(self, part_id: str, node_id: str) -> tuple[Row, ...]:
        """All rows of a node, oldest first, also from directories where it was before."""
        found: list[Row] = []
        seen: set[str] = set()
        todo = [part_id]
        while todo:
            part = todo.pop()
            if part in seen:
                continue
            seen.add(part)
            rows = self.partition(part).by_node.get(node_id, ())
            found += rows
            todo += [row.attributes[MOVED_FROM] for row in rows if MOVED_FROM in row.attributes]
        return tuple(sorted(found, key=lambda row: (row.txn_seq, not row.removed)))

    def content(self, row: Row) -> bytes | None:
        """What was written inline with this row."""
        return row.content if row.content is not None else self.source.content(row)
