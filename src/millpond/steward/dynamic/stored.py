"""`StoredRows`: the rows of a table or a series as factories see them; its pieces are its files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from millpond.fs.entry import from_micros, to_micros
from millpond.fs.paths import split_version
from millpond.provider.rows import ALL, Asked, Piece, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.fs.entry import Row
    from millpond.kernel.table import DeltaTable
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.steward.scope import Scope


class StoredRows:
    """The rows of a node that was written."""

    def __init__(self, scope: Scope, path: str) -> None:
        self.path = path
        self._scope = scope
        self._row: Row = scope.row(path)
        latest = scope.row(split_version(path).path)
        self._bounds = (latest.min_override, latest.max_override)

    @cached_property
    def _table(self) -> DeltaTable:
        return self._scope.table_of(self._row)

    @property
    def schema(self) -> Struct:
        """The columns."""
        return self._table.schema

    @property
    def time_column(self) -> str | None:
        """Which column is the time."""
        return self._row.time_column

    @property
    def key(self) -> str:
        """A version of a node never changes; bounds may."""
        one = split_version(self.path).version
        return key_of(self._row.node_id, self._row.version, one, *self._bounds)

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
        from millpond.steward.temporal.times import within

        ends = [None if end is None else from_micros(end) for end in self._bounds]
        conditions = within(self._row, self._table, *ends)
        both = reduce(and_, conditions) if conditions else None
        paths = [self._files[piece] for piece in pieces]
        return self._table.scan(None, both).only(paths).oldest_first().plan()

    @cached_property
    def _files(self) -> dict[Piece, str]:
        columns = ("path", "size", "stats", "deletionVector", "modificationTime")
        found = self._table.files(columns=columns).to_arrow().to_pylist()
        wanted = None
        if split_version(self.path).version is not None:
            from millpond.steward.temporal.times import added

            wanted = added(self._scope, self.path, self._row)
        files: dict[Piece, str] = {}
        for file in sorted(found, key=lambda file: (file["modificationTime"], file["path"])):
            if wanted is None or file["path"] in wanted:
                files[self._piece(file)] = file["path"]
        return files

    def _piece(self, file: dict[str, Any]) -> Piece:
        vector = file["deletionVector"]
        hidden = None if vector is None else (vector["pathOrInlineDv"], vector["offset"])
        key = key_of(self._row.node_id, file["path"], hidden, *self._bounds)
        stats = json.loads(file["stats"] or "{}")
        first = _micros(stats.get("minValues", {}), self.time_column)
        last = _micros(stats.get("maxValues", {}), self.time_column)
        if last is not None:
            last += 999  # statistics are cut to milliseconds
        return Piece(key, first, last, stats.get("numRecords"), file["size"])


def _micros(values: dict[str, Any], column: str | None) -> int | None:
    given = values.get(column) if column is not None else None
    if not isinstance(given, str):
        return None
    try:
        time = datetime.fromisoformat(given)
    except ValueError:
        return None
    return to_micros(time if time.tzinfo else time.replace(tzinfo=UTC))
