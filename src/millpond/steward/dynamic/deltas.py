"""`DeltaRows`: the rows of a Delta table that is no node of its own, as factories see them.

It is on this machine, or a directory that was copied into the pond: such a directory is laid out
once under `cache/`, since a table is read by the names of its files.
"""

from __future__ import annotations

import json
import logging
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import PathTypeError, SchemaError
from millpond.base.seals import BrokenSealError, Checks, whole_hash
from millpond.base.store.local import LocalStore
from millpond.fs.paths import parts
from millpond.fs.walk import walk
from millpond.kernel.age import by_age
from millpond.plan import types as t
from millpond.provider.rows import ALL, Asked, Piece, key_of
from millpond.provider.times import TIME_COLUMNS, in_range
from millpond.steward.dynamic.shortlog import COLUMN_MAPPING, times_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from millpond.base.store import Store
    from millpond.fs.entry import Row
    from millpond.kernel.table import DeltaTable
    from millpond.plan.node import Plan
    from millpond.provider.formats.reader import Reader
    from millpond.provider.reading import Match
    from millpond.provider.rows import Rows
    from millpond.provider.url import DataUrl
    from millpond.steward.dynamic.derivation import Derivation
    from millpond.steward.scope import Scope

_LOG: Final = "_delta_log"
_DIRECTORY: Final = "cache/delta"
_CHECKED: Final = Checks()


def delta_rows(derivation: Derivation, match: Match, asked: DataUrl, reader: Reader) -> Rows:
    """The rows of a Delta table: of a path of the pond, or of a directory of this machine."""
    scope = derivation.scope
    if asked.is_host:
        location = match.path
    elif match.kind.is_directory:
        location = laid_out(scope, match.path)
    elif match.kind.is_bytes:
        raise PathTypeError(
            f"{match.path} is a {match.kind} and no Delta table",
            path=match.path,
            hint=f"a Delta table is a directory with {_LOG} in it",
        )
    elif reader.options_given:
        raise PathTypeError(
            f"{match.path} is a {match.kind} with versions of its own",
            path=match.path,
            hint=f"name one of them: {match.path}@v3",
        )
    else:
        return derivation.rows(match.path)
    format_: Any = reader.format
    table = format_.table(location, reader.options, settings=scope.pond.settings)
    return DeltaRows(match.path, table)


class DeltaRows:
    """The rows of a version of a Delta table; its pieces are its files."""

    def __init__(self, path: str, table: DeltaTable) -> None:
        self.path = path
        self._table = table

    @property
    def schema(self) -> t.Struct:
        """The columns."""
        return self._table.schema

    @cached_property
    def time_column(self) -> str | None:
        """The column with a usual name that is a time."""
        times = (t.TIMESTAMP, t.TIMESTAMP_NTZ)
        found = {field.name for field in self.schema if field.type in times}
        return next((name for name in TIME_COLUMNS if name in found), None)

    @property
    def key(self) -> str:
        """A version of a table never changes."""
        return key_of("delta", self._table.metadata.id, self._table.version)

    def pieces(self) -> Sequence[Piece]:
        """Return a piece for each live file, the oldest first."""
        return list(self._files)

    def plan(self, asked: Asked = ALL) -> Plan:
        """The rows that are wanted."""
        plan = self._table.scan().oldest_first().plan()
        if asked.is_all:
            return plan
        if self.time_column is None:
            raise SchemaError(f"{self.path} has no column with a time")
        return in_range(plan, self.time_column, asked)

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """The rows of some files."""
        paths = [self._files[piece] for piece in pieces]
        return self._table.scan().only(paths).oldest_first().plan()

    @cached_property
    def _files(self) -> dict[Piece, str]:
        columns = ("path", "size", "stats", "deletionVector", "modificationTime", "tags")
        found: dict[Piece, str] = {}
        files = self._table.files(columns=columns).to_arrow().to_pylist()
        for file in sorted(files, key=by_age):
            vector = file["deletionVector"]
            hidden = None if vector is None else (vector["pathOrInlineDv"], vector["offset"])
            key = key_of("delta", self._table.metadata.id, file["path"], hidden)
            stats = json.loads(file["stats"] or "{}")
            times = self._times(stats)
            found[Piece(key, *times, stats.get("numRecords"), file["size"])] = file["path"]
        return found

    def _times(self, stats: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """When the rows of a file are, if all have a time."""
        name = self._physical_time
        if name is None or stats.get("nullCount", {}).get(name) != 0:
            return None, None
        return times_in(stats, name)

    @cached_property
    def _physical_time(self) -> str | None:
        """The time as files call it."""
        mode = self._table.metadata.configuration.get(COLUMN_MAPPING, "none")
        return self.time_column if mode == "none" else None


def laid_out(scope: Scope, path: str) -> str:
    """Where a directory of the pond lies as files under their own names; its log comes last."""
    from millpond.base.store import open_store

    depth = len(parts(path))
    files = {}
    for located in walk(scope.view, path, follow=True):
        if located.row is not None and located.entry_type.is_bytes:
            files["/".join(parts(located.path)[depth:])] = located
    log = sorted(name for name in files if name.startswith(f"{_LOG}/"))
    if not log:
        raise PathTypeError(
            f"{path} is a directory and no Delta table: it has no {_LOG}",
            path=path,
            hint="name the directory that has one",
        )
    rows = {name: located.row for name, located in files.items()}
    key = key_of(*(f"{name}={row.blake3}" for name, row in sorted(rows.items()) if row))
    base = f"{_DIRECTORY}/{key}"
    store = open_store(scope.pond.location, settings=scope.pond.settings, durable=False)
    sizes = {meta.path: meta.size for meta in store.list(f"{base}/")}
    for name in (*sorted(set(files) - set(log)), *log):
        path = files[name].path
        if not _is_intact(store, f"{base}/{name}", scope.byte_rows(path), sizes):
            store.put(f"{base}/{name}", scope.read_chunks(path), mode="overwrite")
    return f"{scope.pond.location}/{base}"


def _is_intact(store: Store, name: str, versions: Sequence[Row], sizes: Mapping[str, int]) -> bool:
    """Return whether a file was laid out, and is what it was; an object store sees to that.

    Of a series, whose versions are one file here, the size is compared alone.
    """
    if sizes.get(name) != sum(row.size or 0 for row in versions):
        return False
    if len(versions) > 1 or not isinstance(store, LocalStore):
        return True
    try:
        _CHECKED.once(store.root / name, partial(_check, versions[0].blake3))
    except BrokenSealError:
        log = logging.getLogger("millpond.steward")
        log.warning("%s/%s is damaged and is copied again", store.url, name)
        return False
    except OSError:
        return False
    return True


def _check(digest: str | None, file: Path) -> None:
    if whole_hash(file) != digest:
        raise BrokenSealError("it has another hash")
