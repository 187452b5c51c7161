"""`StoredRows`: the rows of a table or a series as factories see them; its pieces are its files."""

from __future__ import annotations

import uuid
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING

from millpond.fs.entry import from_micros
from millpond.fs.paths import split_version
from millpond.kernel.paths import resolve
from millpond.plan.sources import File, Scan
from millpond.provider.rows import ALL, Asked, Piece, key_of
from millpond.provider.times import conditions
from millpond.steward.dynamic.live import LiveFiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millpond.fs.entry import Row
    from millpond.kernel.table import DeltaTable
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.kept import Kept
    from millpond.steward.dynamic.shortlog import Fact, Live
    from millpond.steward.scope import Scope


class StoredRows:
    """The rows of a node that was written."""

    def __init__(self, scope: Scope, path: str, kept: Kept | None = None) -> None:
        self.path = path
        self._scope = scope
        self._kept = kept
        self._row: Row = scope.row(path)
        latest = scope.row(split_version(path).path)
        self._bounds = (latest.min_override, latest.max_override)

    @cached_property
    def _table(self) -> DeltaTable:
        return self._scope.table_of(self._row)

    @cached_property
    def schema(self) -> Struct:
        """The columns."""
        return self._live.schema

    @property
    def time_column(self) -> str | None:
        """Which column is the time."""
        return self._row.time_column

    @cached_property
    def key(self) -> str:
        """A version of a node never changes; bounds may. In a transaction it is none yet."""
        one = split_version(self.path).version
        draft = uuid.uuid4() if self._kept is None else None
        return key_of(self._row.node_id, self._row.version, one, *self._bounds, draft)

    @cached_property
    def _live(self) -> Live:
        """The columns and the files of this version of the table."""
        return LiveFiles(self._scope, self._row, self._kept).find()

    @cached_property
    def _files(self) -> dict[Piece, str]:
        """Where the pieces are, the oldest first."""
        found = list(self._live.files.values())
        if split_version(self.path).version is not None:
            from millpond.steward.temporal.times import added

            wanted = added(self._scope, self.path, self._row)
            found = [fact for fact in found if wanted is None or fact.path in wanted]
        found.sort(key=lambda fact: (fact.age, fact.written, fact.path))
        return {self._piece(fact): fact.path for fact in found}

    def _piece(self, fact: Fact) -> Piece:
        key = key_of(self._row.node_id, fact.path, fact.hidden, *self._bounds)
        return Piece(key, fact.first, fact.last, fact.rows, fact.size)

    def plan(self, asked: Asked = ALL) -> Plan:
        """The rows; of a series only within its bounds."""
        from millpond.steward.temporal.times import stored_rows

        if asked.is_all or self.time_column is None:
            return stored_rows(self._scope, self.path)
        ends = [None if end is None else from_micros(end) for end in (asked.start, asked.end)]
        return stored_rows(self._scope, self.path, time_start=ends[0], time_end=ends[1])

    def pieces(self) -> Sequence[Piece]:
        """A piece for each live file."""
        return list(self._files)

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """The rows of some files."""
        time = self.time_column
        bounds = [] if time is None else conditions(self.schema, time, Asked(*self._bounds))
        paths = [self._files[piece] for piece in pieces]
        if self._live.is_plain:
            plan = self._scan(dict(zip(paths, pieces, strict=True)))
            return plan.filter(*bounds) if bounds else plan
        both = reduce(and_, bounds) if bounds else None
        return self._table.scan(None, both).only(paths).oldest_first().plan()

    def _scan(self, pieces: Mapping[str, Piece]) -> Plan:
        place = self._scope.pond.tables.place(self._row.node_id)
        wanted = [file for file in self._files.values() if file in pieces]  # the oldest come first
        files = (
            File(resolve(place, path), pieces[path].size, pieces[path].rows) for path in wanted
        )
        return Scan("parquet", tuple(files), self.schema)
