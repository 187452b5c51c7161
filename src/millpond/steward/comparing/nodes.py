"""Two nodes, or two versions of one: what differs between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.base.errors import DirectoryError, PathTypeError
from millpond.fs.entry import EntryType
from millpond.fs.paths import split_version
from millpond.steward.comparing.contents import ByteSide, ContentDiff, MadeSide, compare_contents
from millpond.steward.comparing.rows import RowDiff, compare_computed, compare_tables

if TYPE_CHECKING:
    from millpond.fs.entry import Row
    from millpond.steward.scope import Scope


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: a path, or a version of it, at a moment of the pond."""

    scope: Scope
    path: str
    label: str
    """What it is called where both have the same path."""

    def row(self) -> Row:
        """What is known of it."""
        row = self.scope.row(self.path)
        if row.entry_type.is_directory:
            raise DirectoryError(
                f"{self.path} is a directory",
                path=self.path,
                hint="compare it with what it was: pond diff --from TRANSACTION PATH",
            )
        return row

    def contents(self) -> ByteSide | MadeSide:
        """Its bytes: all of a series up to its version."""
        row = self.row()
        if row.entry_type is EntryType.DYNAMIC_FILE:
            return MadeSide(self.label, self.scope.read_bytes(self.path))
        plain = split_version(self.path).path
        rows = self.scope.byte_rows(plain, version=row.version)
        return ByteSide(self.scope, self.label, rows)


@dataclass(frozen=True, slots=True)
class NodeDiff:
    """How two nodes differ: in their bytes, or in their rows."""

    old: str
    new: str
    type: str
    contents: ContentDiff | None = None
    rows: RowDiff | None = None

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        found = self.contents or self.rows
        return found is not None and found.is_same


def has_bytes(kind: EntryType) -> bool:
    """Whether a node of a kind is a file, stored or computed."""
    return kind.is_bytes or kind is EntryType.DYNAMIC_FILE


def has_rows(kind: EntryType) -> bool:
    """Whether a node of a kind is a table or a series, stored or computed."""
    return kind.is_table or kind in (EntryType.DYNAMIC_TABLE, EntryType.DYNAMIC_SERIES)


def compare_nodes(old: Side, new: Side, *, limit: int = 10) -> NodeDiff:
    """Compare two nodes of the same kind."""
    before, after = old.row(), new.row()
    kind = str(after.entry_type)
    if has_bytes(before.entry_type) and has_bytes(after.entry_type):
        found = compare_contents(old.contents(), new.contents())
        return NodeDiff(old.label, new.label, kind, contents=found)
    if before.entry_type.is_table and after.entry_type.is_table:
        tables = (old.scope.table_of(before), new.scope.table_of(after))
        rows = compare_tables(*tables, engine=new.scope.pond.engine, limit=limit)
        return NodeDiff(old.label, new.label, kind, rows=rows)
    if has_rows(before.entry_type) and has_rows(after.entry_type):
        sides = (side.scope.derivation.rows(side.path) for side in (old, new))
        rows = compare_computed(*sides, engine=new.scope.pond.engine_for, limit=limit)
        return NodeDiff(old.label, new.label, kind, rows=rows)
    raise PathTypeError(
        f"{old.path} is a {before.entry_type} and {new.path} is a {after.entry_type}: "
        "they can't be compared",
        path=new.path,
        hint="compare bytes with bytes, or rows with rows",
    )
