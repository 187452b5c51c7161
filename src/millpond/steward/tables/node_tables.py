"""The Delta tables behind nodes. A transaction's commits to them are staged, and count once the
OpLog names them; then they are published, so that every reader of Delta sees them.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import (
    ConflictError,
    IntegrityError,
    MillpondError,
    ObjectNotFoundError,
    StoreError,
    VersionNotFoundError,
)
from millpond.base.store import open_store
from millpond.kernel.commits import Commit, check_chain, damaged_commit, read_commit
from millpond.kernel.names import commit_name
from millpond.kernel.open import SnapshotBuilder
from millpond.kernel.table import DeltaTable, delta_table
from millpond.kernel.write.commit import StagedCommit, is_staged_as, log_path, publish_commit
from millpond.steward.committing.steps import step
from millpond.steward.tables.pending import PendingTable, discard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millpond.base.settings import Settings
    from millpond.base.store import ObjectMeta, Store
    from millpond.fs.entry import Row
    from millpond.plan.types import Struct

DIRECTORY: Final = "tables"
CHECKPOINT_EVERY: Final = 10
MOST_COMMITS: Final = 20
MOST_KEPT: Final = 1000
MOST_STEPS: Final = 10
_log = logging.getLogger("millpond.steward")


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
        try:
            found = kept and self._advanced(kept, row)
            found = found or delta_table(place, version, settings=self.settings)
        except VersionNotFoundError:
            if not row.staged_commit:
                raise
            return self._open_staged(row)
        self.keep(row.node_id, found)
        return found

    def _advanced(self, kept: DeltaTable, row: Row) -> DeltaTable | None:
        """A version that is a few commits behind one that is known; None if it has to be opened."""
        wanted, store = row.delta_version or 0, self.store(row.node_id)
        if not 0 < wanted - kept.version <= MOST_STEPS:
            return None
        commits: list[StagedCommit] = []
        before: Commit | None = None
        for version in range(kept.version + 1, wanted + 1):
            try:
                meta = store.head(log_path(commit_name(version)))
                commit = read_commit(store, version, kept.location)
            except ObjectNotFoundError:
                return None
            if before is not None:
                check_chain(before, commit, kept.location)
            if "metaData" in commit.actions or "protocol" in commit.actions:
                return None
            before = commit
            commits.append(StagedCommit(kept.location, version, "", meta.size, _millis(meta)))
        segment = kept.snapshot.segment
        files = (*segment.commits, *(staged.published() for staged in commits))
        newer = replace(kept.snapshot, segment=replace(segment, version=wanted, commits=files))
        return DeltaTable(newer, self.settings)

    def _open_staged(self, row: Row) -> DeltaTable:
        """A table whose last commits are in the OpLog, and were not published yet."""
        place, paths = self.place(row.node_id), (row.staged_commit or "").split()
        try:
            # Whoever published them would remove them where a reader still needs them.
            self.publish_node(row.node_id, paths)
        except StoreError as error:
            if isinstance(error, ObjectNotFoundError):
                raise
            _log.info("%s is read from staged commits: %s", place, error.message)
            staged = self.staged(row.node_id, paths)
            if staged:
                return with_staged(place, staged, self.settings)
        return delta_table(place, row.delta_version, settings=self.settings)

    def staged(self, node_id: str, paths: Sequence[str]) -> list[StagedCommit]:
        """Staged commits that are there, and so are not published yet."""
        store, found = self.store(node_id), []
        for path in paths:
            with suppress(ObjectNotFoundError):
                meta = store.head(path)
                commit = StagedCommit(
                    self.place(node_id), _version(path), path, meta.size, _millis(meta)
                )
                found.append(commit)
        return found

    def has(self, node_id: str, version: int) -> bool:
        """Whether a version of a table is published."""
        try:
            self.store(node_id).head(log_path(commit_name(version)))
        except ObjectNotFoundError:
            return False
        return True

    def added_files(self, row: Row) -> set[str]:
        """The files that a version has brought, by its own commits."""
        self.open(row)  # which sees to it that they are published
        store, found = self.store(row.node_id), set()
        for path in (row.staged_commit or "").split():
            version = _version(path)
            place = self.place(row.node_id)
            try:
                commit = read_commit(store, version, place)
            except ObjectNotFoundError:
                try:
                    commit = read_commit(store, version, place, path)
                except ObjectNotFoundError as error:
                    raise VersionNotFoundError(
                        f"what version {row.version} of {row.name} has brought is not kept any "
                        "more: its commit has left the log",
                        table=place,
                        hint="read a later version, or the whole series as of then",
                    ) from error
            if not is_staged_as(path, commit.seal):
                raise damaged_commit(
                    place, log_path(commit_name(version)), "it is not the one that the OpLog names"
                )
            found |= {add["path"] for add in commit.actions.get("add", ())}
        return found

    def create(self, node_id: str, schema: Struct, *, path: str, name: str) -> PendingTable:
        """A table for a new node: nothing names it before the OpLog does."""
        from millpond.kernel.write.create import create_table

        place = self.place(node_id)
        try:
            table = create_table(place, schema, name=name, settings=self.settings)
        except BaseException:
            discard(place, path, self.settings)
            raise
        return PendingTable(table, path, is_new=True)

    def publish(self, staged: Sequence[Mapping[str, Any]]) -> int:
        """Publish what a transaction has staged; how many of them were not published yet."""
        paths = tuple(path for item in staged for path in item["paths"])
        if paths == self._published:
            return 0
        count, damage = 0, None
        for item in staged:
            try:
                count += self.publish_node(item["node_id"], item["paths"])
            except (IntegrityError, ConflictError) as error:  # the others have to be, all the same
                damage = damage or error
        if damage is not None:
            raise damage
        self._published = paths
        return count

    def publish_node(self, node_id: str, paths: Sequence[str]) -> int:
        """Publish what was staged for one table."""
        store, count = self.store(node_id), 0
        with step("publish_table"):
            for path in paths:
                count += self._publish(store, node_id, path)
        return count

    def _publish(self, store: Store, node_id: str, path: str) -> int:
        version = _version(path)
        try:
            publish_commit(store, StagedCommit(self.place(node_id), version, path, 0, 0))
        except ObjectNotFoundError:
            self._check_published(store, node_id, version)
            return 0
        store.delete(path)
        return 1

    def _check_published(self, store: Store, node_id: str, version: int) -> None:
        """What is not staged any more has been published, and may since have left the log."""
        try:
            store.head(log_path(commit_name(version)))
        except ObjectNotFoundError as error:
            if delta_table(self.place(node_id), settings=self.settings).version < version:
                raise IntegrityError(
                    f"version {version} of the table {self.place(node_id)} is lost: the OpLog "
                    "names it, and it is neither staged nor published",
                    path=self.place(node_id),
                    hint="pond fsck tells what else is damaged; restore it from a backup",
                ) from error

    def look_after(self, staged: Sequence[Mapping[str, Any]]) -> None:
        """Checkpoints where it is time; the commits stand whatever becomes of these."""
        from millpond.kernel.write.checkpoint import write_checkpoint

        for item in staged:
            version, commits = item["version"], len(item["paths"])
            if version // CHECKPOINT_EVERY == (version - commits) // CHECKPOINT_EVERY:
                continue
            place = self.place(item["node_id"])
            try:
                write_checkpoint(delta_table(place, version, settings=self.settings))
            except (MillpondError, OSError) as error:
                _log.warning("no checkpoint of %s: %s", item["node_id"], error)


def _millis(meta: ObjectMeta) -> int:
    return int(meta.modified.timestamp() * 1000)


def _version(path: str) -> int:
    """The version that a staged commit is for."""
    return int(path.rpartition("/")[2][:20])


def with_staged(
    location: str, staged: Sequence[StagedCommit], settings: Settings | None
) -> DeltaTable:
    """A table with commits that are not published."""
    tail = [commit.ratified() for commit in staged]
    version = staged[-1].version
    snapshot = SnapshotBuilder(location).with_log_tail(tail).at_version(version)
    from millpond.kernel.engines import log_engine

    return DeltaTable(snapshot.build(log_engine("auto", settings)), settings)
