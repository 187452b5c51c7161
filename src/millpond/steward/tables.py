"""The Delta tables behind nodes. A transaction's commits to them are staged, and count once the
OpLog names them; then they are published, so that every reader of Delta sees them.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import (
    MillpondError,
    ObjectNotFoundError,
    SchemaError,
    VersionNotFoundError,
)
from millpond.base.store import open_store
from millpond.kernel.names import commit_name
from millpond.kernel.open import SnapshotBuilder
from millpond.kernel.table import DeltaTable, delta_table
from millpond.kernel.write.commit import StagedCommit, log_path, publish_commit
from millpond.kernel.write.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millpond.base.settings import Settings
    from millpond.base.store import Store
    from millpond.fs.entry import Row
    from millpond.plan.types import Struct

DIRECTORY: Final = "tables"
CHECKPOINT_EVERY: Final = 10
MOST_COMMITS: Final = 20
MOST_KEPT: Final = 1000
_log = logging.getLogger("millpond.steward")


@dataclass
class PendingTable:
    """What a transaction does to one node's table."""

    table: DeltaTable
    path: str
    """Of the node, for errors."""
    is_new: bool
    tx: Transaction | None = None
    staged: list[StagedCommit] = field(default_factory=list)
    done: list[Transaction] = field(default_factory=list)
    """Those that are staged."""
    earlier: list[Transaction] = field(default_factory=list)
    """Those whose files were staged again; what they put is still in use."""

    def transaction(self) -> Transaction:
        """The open transaction of the table."""
        if self.tx is None:
            self.tx = Transaction(self.table)
        return self.tx

    def stage(self) -> DeltaTable:
        """Stage what is open; the table as it will be."""
        if self.tx is not None:
            tx, self.tx = self.tx, None
            self.done.append(tx)
            self.staged.append(tx.stage())
            self.table = tx.ratified(self.staged[-1])
        return self.table

    def published(self) -> DeltaTable:
        """The table when all that was staged is published; nothing is read for it."""
        snapshot = self.table.snapshot
        places = {staged.version: staged.published() for staged in self.staged}
        commits = tuple(places.get(file.name.version, file) for file in snapshot.segment.commits)
        segment = replace(snapshot.segment, commits=commits)
        return DeltaTable(replace(snapshot, segment=segment), self.table.settings)

    @property
    def adds(self) -> list[dict[str, Any]]:
        """The files that are to become part of the table."""
        done = [*self.done, *([self.tx] if self.tx else [])]
        return [dict(add) for tx in done for add in tx.pending.adds.values()]

    def restage(self, newer: DeltaTable, settings: Settings | None) -> None:
        """The same files on top of what others have appended meanwhile."""
        store = open_store(self.table.location, settings=settings)
        wanted = self.done[-1].metadata.schema_string if self.done else None
        theirs = newer.metadata.schema_string
        changed = wanted is not None and wanted != self.done[0].base.metadata.schema_string
        adds = self.adds
        for staged in self.staged:
            store.delete(staged.path)
        again = Transaction(newer, operation="WRITE")
        if changed and wanted != theirs:
            again.set_metadata(schema=self.done[-1].view.plain_schema)
        again.add_files(adds)
        self.earlier += self.done
        self.staged, self.done, self.table, self.tx = [], [], newer, again
        self.stage()

    def rollback(self) -> None:
        """Take back everything that was put for it."""
        for tx in (*self.earlier, *self.done, *([self.tx] if self.tx else [])):
            tx.rollback()
        if self.is_new:
            store = open_store(self.table.location, settings=self.table.settings)
            for meta in list(store.list()):
                store.delete(meta.path)


class NodeTables:
    """All of them, under `<pond>/tables`."""

    def __init__(self, location: str, *, settings: Settings | None = None) -> None:
        self.location = f"{location}/{DIRECTORY}"
        self.settings = settings
        self._kept: OrderedDict[str, DeltaTable] = OrderedDict()
        self._published: tuple[str, ...] = ()
        """What was published last, by this process or before its eyes."""

    def keep(self, node_id: str, table: DeltaTable) -> None:
        """Remember a version of a table that is published: it will not change."""
        self._kept.pop(node_id, None)
        # With many commits to read, a checkpoint that is there by now serves better.
        if len(table.snapshot.segment.commits) <= MOST_COMMITS:
            self._kept[node_id] = table
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)

    def place(self, node_id: str) -> str:
        """Where a node's table is."""
        return f"{self.location}/{node_id}"

    def store(self, node_id: str) -> Store:
        """The store of a node's table."""
        return open_store(self.place(node_id), settings=self.settings)

    def open(self, row: Row) -> DeltaTable:
        """A node's table as a row of the OpLog knows it, published or not."""
        place, version = self.place(row.node_id), row.delta_version
        kept = self._kept.get(row.node_id)
        if kept is not None and kept.version == version:
            return kept
        for _ in range(2):
            try:
                found = delta_table(place, version, settings=self.settings)
                self.keep(row.node_id, found)
                return found
            except VersionNotFoundError:
                if not row.staged_commit:
                    raise
            try:
                return with_staged(place, self.staged(row), self.settings)
            except ObjectNotFoundError:
                continue  # it was published between the two looks
        return delta_table(place, version, settings=self.settings)

    def staged(self, row: Row) -> list[StagedCommit]:
        """The staged commits that a row names, as far as they are not published yet."""
        store, found = self.store(row.node_id), []
        for path in (row.staged_commit or "").split():
            meta = store.head(path)
            version = int(path.rpartition("/")[2][:20])
            millis = int(meta.modified.timestamp() * 1000)
            found.append(StagedCommit(self.place(row.node_id), version, path, meta.size, millis))
        return found

    def create(self, node_id: str, schema: Struct, *, path: str, name: str) -> PendingTable:
        """A table for a new node: nothing names it before the OpLog does."""
        from millpond.kernel.write.create import create_table

        table = create_table(self.place(node_id), schema, name=name, settings=self.settings)
        return PendingTable(table, path, is_new=True)

    def publish(self, staged: Sequence[Mapping[str, Any]]) -> int:
        """Publish what a transaction has staged; how many of them were not published yet."""
        paths = tuple(path for item in staged for path in item["paths"])
        if paths == self._published:
            return 0
        count = 0
        for item in staged:
            store = self.store(item["node_id"])
            for path in item["paths"]:
                count += self._publish(store, item["node_id"], path)
        self._published = paths
        return count

    def _publish(self, store: Store, node_id: str, path: str) -> int:
        version = int(path.rpartition("/")[2][:20])
        staged = StagedCommit(self.place(node_id), version, path, 0, 0)
        try:
            publish_commit(store, staged)
        except ObjectNotFoundError:
            store.head(log_path(commit_name(version)))  # somebody else has published it
            return 0
        store.delete(path)
        return 1

    def look_after(self, staged: Sequence[Mapping[str, Any]]) -> None:
        """Checkpoints where it is time; the commits stand whatever becomes of these."""
        from millpond.kernel.write.checkpoint import write_checkpoint

        for item in staged:
            if item["version"] and item["version"] % CHECKPOINT_EVERY == 0:
                try:
                    write_checkpoint(delta_table(self.place(item["node_id"]), item["version"],
                                                 settings=self.settings))  # fmt: skip
                except (MillpondError, OSError) as error:
                    _log.warning("no checkpoint of %s: %s", item["node_id"], error)


def with_staged(
    location: str, staged: Sequence[StagedCommit], settings: Settings | None
) -> DeltaTable:
    """A table with commits that are not published."""
    tail = [commit.ratified() for commit in staged]
    version = staged[-1].version
    snapshot = SnapshotBuilder(location).with_log_tail(tail).at_version(version)
    from millpond.kernel.engines import log_engine

    return DeltaTable(snapshot.build(log_engine("auto", settings)), settings)


def evolve(
    tx: Transaction, wanted: Struct, *, path: str, version: int, renamed: Mapping[str, str] | None
) -> None:
    """Make the table fit new rows: columns that are new, types that are wider, other names."""
    from millpond.plan.types import Struct as StructType

    old = tx.view.plain_schema
    names = dict(renamed or {})
    known = {names.get(one.name, one.name): one for one in old}
    fields = [replace(one, name=name) for name, one in known.items()]
    configuration: dict[str, str | None] = {}
    if names:
        configuration["delta.columnMapping.mode"] = "name"
    changed = bool(names)
    for given in wanted:
        mine = known.get(given.name)
        if mine is None:
            fields.append(replace(given, nullable=True))
            changed = True
        elif mine.type != given.type and not _holds(mine.type, given.type):
            at = list(known).index(given.name)
            fields[at] = replace(fields[at], type=given.type)
            configuration["delta.enableTypeWidening"] = "true"
            changed = True
    if not changed:
        return
    try:
        tx.set_metadata(
            schema=StructType(tuple(fields)), renamed=names or None, configuration=configuration
        )
    except SchemaError as error:
        raise SchemaError(
            f"{path}: {error.message} (version {version} has the first, version {version + 1} "
            "would have the second)",
            hint="cast the column before it is written, give it another name, or remove the table",
        ) from error


def _holds(old: Any, new: Any) -> bool:
    """Whether values of a new type fit into the old one without loss: no change is needed."""
    from millpond.plan.types import DOUBLE, FLOAT, INTEGRAL

    if old in INTEGRAL and new in INTEGRAL:
        return INTEGRAL.index(new) <= INTEGRAL.index(old)
    return bool(old == DOUBLE and new == FLOAT)
