"""`StoredRows`: the rows of a table or a series as factories see them; its pieces are its files."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

from millpond.fs.entry import from_micros, to_micros
from millpond.fs.paths import split_version
from millpond.kernel.paths import resolve
from millpond.plan.sources import File, Scan
from millpond.plan.typejson import schema_from_json, schema_to_json
from millpond.provider.rows import ALL, Asked, Piece, key_of
from millpond.provider.times import conditions
from millpond.steward.dynamic.shortlog import read_short

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millpond.fs.entry import Row
    from millpond.kernel.table import DeltaTable
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.kept import Kept
    from millpond.steward.scope import Scope

FEW_COMMITS: Final = 3


class StoredRows:
    """The rows of a node that was written.

    Its columns and files are noted: a version of a table never changes, and to look into a thousand
    logs takes longer than to read a thousand notes.
    """

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
        return schema_from_json(self._facts["schema"])

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
    def _facts(self) -> dict[str, Any]:
        """The columns and the files of this version of the table."""
        row, one = self._row, split_version(self.path).version
        key = key_of("facts", row.node_id, row.version, row.delta_version, row.staged_commit, one)
        # Some commits are read as fast as a note.
        notes = self._kept if (row.delta_version or 0) > FEW_COMMITS else None
        known = None if notes is None else notes.read_text(key)
        if known is not None:
            found: dict[str, Any] = json.loads(known)
            return found
        schema, files, is_plain = self._read()
        found = {
            "schema": schema_to_json(schema),
            "files": self._facts_of(files),
            "is_plain": is_plain,
        }
        if notes is not None:
            notes.write_text(key, json.dumps(found))
        return found

    def _read(self) -> tuple[Struct, list[dict[str, Any]], bool]:
        """The columns, the files, and whether these can be read as they are."""
        tables, row = self._scope.pond.tables, self._row
        if self._kept is not None:  # what a transaction has written is not in the log yet
            place = tables.place(row.node_id)
            short = read_short(tables.store(row.node_id), place, row.delta_version or 0)
            if short is not None:
                return *short, True
        columns = ("path", "size", "stats", "deletionVector", "modificationTime")
        files = self._table.files(columns=columns).to_arrow().to_pylist()
        return self._table.schema, files, False

    def _facts_of(self, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if split_version(self.path).version is not None:
            from millpond.steward.temporal.times import added

            wanted = added(self._scope, self.path, self._row)
            found = [file for file in found if wanted is None or file["path"] in wanted]
        found.sort(key=lambda file: (file["modificationTime"], file["path"]))
        return [self._fact(file) for file in found]

    def _fact(self, file: dict[str, Any]) -> dict[str, Any]:
        vector = file["deletionVector"]
        hidden = None if vector is None else [vector["pathOrInlineDv"], vector["offset"]]
        stats = json.loads(file["stats"] or "{}")
        first = _micros(stats.get("minValues", {}), self.time_column)
        last = _micros(stats.get("maxValues", {}), self.time_column)
        return {
            "path": file["path"],
            "hidden": hidden,
            "first": first,
            "last": None if last is None else last + 999,  # statistics are cut to milliseconds
            "rows": stats.get("numRecords"),
            "size": file["size"],
        }

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
        if self._facts["is_plain"]:
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

    @cached_property
    def _files(self) -> dict[Piece, str]:
        return {self._piece(file): file["path"] for file in self._facts["files"]}

    def _piece(self, file: dict[str, Any]) -> Piece:
        key = key_of(self._row.node_id, file["path"], file["hidden"], *self._bounds)
        return Piece(key, file["first"], file["last"], file["rows"], file["size"])


def _micros(values: dict[str, Any], column: str | None) -> int | None:
    given = values.get(column) if column is not None else None
    if not isinstance(given, str):
        return None
    try:
        time = datetime.fromisoformat(given)
    except ValueError:
        return None
    return to_micros(time if time.tzinfo else time.replace(tzinfo=UTC))
