"""What nothing needs any more: objects that no version of any node names, and that are old enough.

All versions that rows of the OpLog tell of are kept with all they need. What goes is what crashes
and lost races left, files that compaction has replaced, commits of the OpLog's log, and results
that were computed and have not been used for so long.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote

from millpond.base.errors import ObjectNotFoundError
from millpond.fs.blobs import YOUNG, blob_path
from millpond.fs.oplog.persistence import state_of
from millpond.fs.working import Working
from millpond.kernel.commits import parse_commit
from millpond.kernel.durations import DELETED_FILES, duration_millis
from millpond.kernel.dv import DeletionVector
from millpond.kernel.names import LOG_DIRECTORY, STAGED_COMMITS, parse_name
from millpond.kernel.table import delta_table
from millpond.kernel.write.clean import clean_log
from millpond.kernel.write.state import Tombstones
from millpond.provider.kept import DIRECTORY as RESULTS
from millpond.steward.control.upkeep import find_old
from millpond.steward.keeping.alive import scopes_of
from millpond.steward.write import WriteScope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from millpond.base.store import ObjectMeta
    from millpond.fs.entry import Row
    from millpond.fs.oplog.log import LogState
    from millpond.fs.tree import Tree
    from millpond.steward.pond import Pond

Kind = Literal["rows", "log", "data", "staged", "table", "blob", "control", "cache"]
_DATA: Final = "data/"
_A_MOMENT: Final = 60_000
"""Milliseconds that may pass between the last checkpoint and now."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """An object that can go."""

    kind: Kind
    object: str
    size: int


def find_garbage(pond: Pond, before: datetime) -> list[Garbage]:
    """What nothing needs, and nothing needed at that time or later."""
    return list(_Vacuum(pond, before).garbage())


def delete_garbage(pond: Pond, garbage: Iterable[Garbage], before: datetime) -> list[Garbage]:
    """Delete it, but for blobs that somebody has used again meanwhile; what went."""
    gone = []
    for item in garbage:
        if item.kind == "blob" and not _is_old(pond, item.object, before - YOUNG):
            continue
        pond.store.delete(item.object)
        gone.append(item)
    return gone


def _is_old(pond: Pond, path: str, before: datetime) -> bool:
    try:
        return pond.store.head(path).modified < before
    except ObjectNotFoundError:
        return False


class _Vacuum:
    def __init__(self, pond: Pond, before: datetime) -> None:
        self.pond = pond
        self.before = before
        # In this order: what was committed since the listing is named, and not in it.
        self.objects = {meta.path: meta for meta in pond.store.list()}
        self.tree = pond.oplog.latest()
        gc.collect()  # scopes that nobody holds any more do not count
        self.scopes = scopes_of(pond.location)
        self.rows = list(_all_rows(self.tree))

    def garbage(self) -> Iterator[Garbage]:
        """All of it."""
        yield from self._row_files()
        yield from self._log()
        yield from self._tables()
        yield from self._blobs()
        yield from self._results()
        for path in find_old(self.pond.control.log, self.before):
            known = self.objects.get(f"control/{path}")
            yield Garbage("control", f"control/{path}", known.size if known is not None else 0)

    def _old(self, prefix: str) -> list[ObjectMeta]:
        found = (meta for path, meta in self.objects.items() if path.startswith(prefix))
        return [meta for meta in found if meta.modified < self.before]

    # The OpLog

    def _row_files(self) -> Iterator[Garbage]:
        named = set(_paths(state_of(self.tree)))
        for scope in self.scopes:
            base = scope.tree.base if isinstance(scope.tree, Working) else scope.tree
            named |= set(_paths(state_of(base)))  # type: ignore[arg-type]
        named |= self._just_removed()
        for meta in self._old(_DATA):
            path = meta.path.removeprefix(_DATA)
            if not path.startswith("_") and path not in named:
                yield Garbage("rows", meta.path, meta.size)

    def _just_removed(self) -> set[str]:
        """Files that were live until lately: readers of other processes may be at them."""
        table = self.pond.oplog.log.table()
        since = int(self.before.timestamp() * 1000)
        kept = (duration_millis(table.metadata, DELETED_FILES) or 0) + _A_MOMENT
        if since >= int(time.time() * 1000) - kept:
            batches = Tombstones(table.snapshot, since - 1).batches(table.log_engine("auto"))
            return {row["path"] for b in batches for row in b.column("remove").to_pylist()}
        # Checkpoints do not remember for so long, but commits that are so young are in the log.
        prefix = f"{_DATA}{LOG_DIRECTORY}/"
        found: set[str] = set()
        for path, meta in self.objects.items():
            name = parse_name(path.removeprefix(prefix)) if path.startswith(prefix) else None
            if name is not None and name.kind == "commit" and meta.modified >= self.before:
                found |= {a["path"] for a in _actions(self.pond, path).get("remove", ())}
        return found

    def _log(self) -> Iterator[Garbage]:
        table = self.pond.oplog.log.table()
        for path in clean_log(table, before=self.before, dry_run=True).paths:
            meta = self.objects.get(_DATA + path)
            yield Garbage("log", _DATA + path, meta.size if meta is not None else 0)

    # Tables

    def _tables(self) -> Iterator[Garbage]:
        known = {row.node_id for row in self.rows}
        pending = {
            node_id
            for scope in self.scopes
            if isinstance(scope, WriteScope)
            for node_id in scope.pending
        }
        by_table: dict[str, list[ObjectMeta]] = {}
        for path, meta in self.objects.items():
            if path.startswith("tables/"):
                by_table.setdefault(path.split("/")[1], []).append(meta)
        for node_id, metas in by_table.items():
            if node_id in known:
                yield from self._of_table(node_id, metas)
            elif node_id not in pending and all(meta.modified < self.before for meta in metas):
                yield from (Garbage("table", meta.path, meta.size) for meta in metas)

    def _of_table(self, node_id: str, metas: list[ObjectMeta]) -> Iterator[Garbage]:
        prefix = f"tables/{node_id}/"
        staged = f"{prefix}{LOG_DIRECTORY}/{STAGED_COMMITS}/"
        old = [meta for meta in metas if meta.modified < self.before]
        for meta in old:
            if meta.path.startswith(staged):
                yield Garbage("staged", meta.path, meta.size)
        data = [meta for meta in old if not meta.path.startswith(f"{prefix}{LOG_DIRECTORY}/")]
        if not data:
            return
        place = self.pond.tables.place(node_id)
        unknown = {meta.path.removeprefix(prefix) for meta in data} - self._live(place)
        # Most tables have nothing else, and their logs need not be read from the beginning.
        gone = unknown - self._named(prefix, place, metas) if unknown else set()
        for meta in data:
            if meta.path.removeprefix(prefix) in gone:
                yield Garbage("data", meta.path, meta.size)

    def _live(self, place: str) -> set[str]:
        """The files of a table's newest version."""
        table = delta_table(place, settings=self.pond.settings)
        rows = table.files(columns=("path", "deletionVector")).to_arrow().to_pylist()
        return {path for row in rows for path in _objects(row, place)}

    def _named(self, prefix: str, place: str, metas: list[ObjectMeta]) -> set[str]:
        """All files that any commit of a table's log has made part of it, at any time."""
        found: set[str] = set()
        for meta in metas:
            name = parse_name(meta.path.removeprefix(f"{prefix}{LOG_DIRECTORY}/"))
            if name is None or name.kind != "commit":
                continue
            actions = _actions(self.pond, meta.path)
            for kind in ("add", "cdc", "remove"):
                for action in actions.get(kind, ()):
                    found |= _objects(action, place)
        return found

    # Bytes

    def _blobs(self) -> Iterator[Garbage]:
        named = {blob_path(row.blake3) for row in self.rows if row.blake3}
        for scope in self.scopes:
            if isinstance(scope.tree, Working):
                drafts = scope.tree.drafts.values()
                named |= {blob_path(d.row.blake3) for d in drafts if d.row.blake3}
        for meta in self._old("blobs/"):
            # A transaction may rely on one that nothing names yet, if it is young.
            if meta.path not in named and meta.modified < self.before - YOUNG:
                yield Garbage("blob", meta.path, meta.size)

    # Results

    def _results(self) -> Iterator[Garbage]:
        """A result and the note that goes with it are used together."""
        by_key: dict[str, list[ObjectMeta]] = {}
        for path, meta in self.objects.items():
            if path.startswith(f"{RESULTS}/") and path.endswith((".parquet", ".json")):
                by_key.setdefault(path.rpartition(".")[0], []).append(meta)
        for metas in by_key.values():
            if all(meta.modified < self.before for meta in metas):
                yield from (Garbage("cache", meta.path, meta.size) for meta in metas)


def _all_rows(tree: Tree) -> Iterator[Row]:
    for part in state_of(tree).files:
        for rows in tree.partition(part).by_node.values():
            yield from rows


def _paths(state: LogState) -> Iterator[str]:
    for paths in state.files.values():
        yield from paths


def _actions(pond: Pond, path: str) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the actions of a commit; one that is damaged is an error, since files hang on it."""
    try:
        text = pond.store.get(path)
    except ObjectNotFoundError:
        return {}
    return parse_commit(text, -1, pond.location, path).actions


def _objects(action: Mapping[str, Any], place: str) -> set[str]:
    """The objects of a file: itself, and its deletion vector."""
    found = {unquote(action["path"])}
    if action.get("deletionVector"):
        vector = DeletionVector.from_dict(action["deletionVector"], table=place)
        at = vector.location(place)
        found |= set() if at is None else {at.removeprefix(f"{place}/")}
    return found
