"""A Delta table to which small groups of rows are appended fast: the OpLog, the control table.

`millpond.kernel` opens it; from then on the state is kept here, and only commits that are new are
read. A commit is a Parquet file for each partition and one conditional put.
"""

from __future__ import annotations

import json
import logging
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from blake3 import blake3

from millpond.base.errors import (
    CommitError,
    ObjectNotFoundError,
    StoreError,
    UnknownOutcomeError,
)
from millpond.base.seals import sealed_bytes
from millpond.base.store import open_store
from millpond.base.textseals import seal_of
from millpond.fs.oplog.newest import newest_files
from millpond.kernel.commits import Commit, check_chain, commits_since, read_info
from millpond.kernel.names import commit_name
from millpond.kernel.write.commit import (
    check_not_cleaned,
    encode_commit,
    fate_of,
    log_path,
    put_commit,
)
from millpond.kernel.write.info import engine_info
from millpond.kernel.write.seal import DIGEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millpond.base.settings import Settings
    from millpond.kernel.table import DeltaTable

INFO: Final = "millpond"
"""What a commit says of itself for us, in its commitInfo."""
APP: Final = "millpond"
"""The application whose version in the log is the number of the last transaction."""
CHECKPOINT_EVERY: Final = 25
FAR_BEHIND: Final = 200
"""Who is so many versions behind opens the table anew."""
_log = logging.getLogger("millpond.fs")


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that is to be added: its partition, its bytes, how many rows it has."""

    partition: Mapping[str, str | None]
    content: bytes
    rows: int


@dataclass(frozen=True, slots=True)
class LogState:
    """Which files are live at one version, and what its last transaction said."""

    version: int
    files: Mapping[str, tuple[str, ...]]
    """By partition."""
    last: Mapping[str, Any] = field(default_factory=dict)
    """What the last commit of ours says of itself."""
    seal: str | None = None
    """The seal of the version's commit, which the next one names; None if it is not known."""


class RowLog:
    """One such table."""

    def __init__(
        self,
        location: str,
        partition: str | None,
        *,
        settings: Settings | None = None,
        durable: bool = True,
    ) -> None:
        self.location = location
        self.partition = partition
        self.settings = settings
        self.store = open_store(location, settings=settings, durable=durable)

    def create(self, schema: Any, info: Mapping[str, Any], **how: Any) -> LogState:
        """Make the table, with nothing in it."""
        from millpond.kernel.write.create import create_table

        create_table(
            self.location,
            schema,
            partition_by=[self.partition] if self.partition else [],
            info={INFO: dict(info)},
            settings=self.settings,
            **how,
        )
        return LogState(0, {}, dict(info))

    def replace(
        self,
        schema: Any,
        new: Sequence[NewFile],
        *,
        removed: Iterable[Mapping[str, Any]],
        name: str,
        configuration: Mapping[str, str],
    ) -> int | None:
        """Make the table again in one commit after all others, and return its version.

        The older log is not read. None if another commit took the version's number.
        """
        from millpond.kernel.paths import table_location
        from millpond.kernel.write.create import described
        from millpond.kernel.write.replace import begin_again, next_version

        place = table_location(self.location)
        parts = [self.partition] if self.partition else []
        state = described(place, schema, parts, configuration, name=name)
        version, put = next_version(self.store), list[str]()
        is_done = False
        try:
            adds = [self._put(file, put, data_change=True) for file in new]
            is_done = begin_again(
                self.store,
                place,
                version,
                state,
                adds=adds,
                removes=removed,
                info={INFO: {}},
                settings=self.settings,
            )
        finally:
            if not is_done and not self.has(version):
                self.take_back(put)
        return version if is_done else None

    def table(self, version: int | None = None) -> DeltaTable:
        """The table as the kernel sees it."""
        from millpond.kernel.table import delta_table

        return delta_table(self.location, version, settings=self.settings)

    def _newest(self) -> DeltaTable:
        from millpond.kernel.engines import log_engine
        from millpond.kernel.open import SnapshotBuilder
        from millpond.kernel.paths import table_location
        from millpond.kernel.table import DeltaTable

        place = table_location(self.location)
        builder = SnapshotBuilder(place).with_listing(newest_files(self.store, place))
        return DeltaTable(builder.build(log_engine("auto", self.settings)), self.settings)

    def open(self, version: int | None = None) -> LogState:
        """The newest state, or an older one."""
        table = self._newest() if version is None else self.table(version)
        found: dict[str, list[str]] = {}
        for batch in table.files(columns=("path", "partitionValues")).batches():
            paths = batch.column("path").to_pylist()
            for path, part in zip(paths, self._partitions(batch), strict=True):
                found.setdefault(part, []).append(path)
        files = {part: tuple(paths) for part, paths in found.items()}
        commit = self._info(table.version)
        last = {} if commit is None else _said(commit)
        return LogState(
            table.version,
            files,
            last or self._known(table),
            None if commit is None else commit.seal,
        )

    def _known(self, table: DeltaTable) -> dict[str, Any]:
        """What is still known of the last transaction when its commit has left the log."""
        known = table.app_transactions.get(APP)
        if known is None:
            return {}
        # The commit's time in milliseconds: all of that one may have passed.
        return {"txn_seq": known.version, "timestamp": (known.last_updated or 0) * 1000 + 999}

    def _partitions(self, batch: Any) -> list[str]:
        if self.partition is None:
            return [""] * batch.num_rows
        import pyarrow as pa
        import pyarrow.compute as pc

        values, key = batch.column("partitionValues"), pa.scalar(self.partition)
        is_each_one = len(values.keys) == len(values) and not values.null_count
        if is_each_one:
            steps = pc.pairwise_diff(values.offsets)[1:]
            same = pc.and_(pc.equal(values.keys, key), pc.equal(steps, 1))
            is_each_one = pc.all(same).as_py() is not False
        if is_each_one:
            found: list[str] = values.items.to_pylist()  # ten times as fast as a look-up
        else:
            found = pc.map_lookup(values, key, "first").to_pylist()
        return found

    def said(self, version: int) -> dict[str, Any] | None:
        """What a commit says of itself; None if it has left the log."""
        commit = self._info(version)
        return None if commit is None else _said(commit)

    def _info(self, version: int) -> Commit | None:
        try:
            return read_info(self.store, version, self.location)
        except ObjectNotFoundError:
            return None

    def refresh(self, state: LogState) -> LogState:
        """The newest state, from an older one and the commits after it."""
        files: dict[str, tuple[str, ...]] | None = None
        last, newest = state.last, Commit(state.version, {}, state.seal)
        for commit in commits_since(self.store, state.version + 1, self.location):
            if commit.version - state.version > FAR_BEHIND:
                return self.open()
            if files is None:
                if newest.seal is not None:
                    check_chain(newest, commit, self.location)
                files = dict(state.files)
            self._apply(commit, files)
            last, newest = commit.info.get(INFO) or last, commit
        if files is None:
            # Commits between may have been cleaned away, with a checkpoint behind them.
            return state if self.has(state.version) else self.open()
        return LogState(newest.version, files, dict(last), newest.seal)

    def has(self, version: int) -> bool:
        """Whether the commit of a version is in the log."""
        try:
            self.store.head(log_path(commit_name(version)))
        except ObjectNotFoundError:
            return False
        return True

    def _apply(self, commit: Commit, files: dict[str, tuple[str, ...]]) -> None:
        removed = {action["path"] for action in commit.actions.get("remove", ())}
        for part, paths in files.items() if removed else ():
            if not removed.isdisjoint(paths):
                files[part] = tuple(path for path in paths if path not in removed)
        for action in commit.actions.get("add", ()):
            part = action["partitionValues"].get(self.partition, "") if self.partition else ""
            files[part] = (*files.get(part, ()), action["path"])

    def commit(
        self,
        state: LogState,
        new: Sequence[NewFile],
        info: Mapping[str, Any],
        *,
        txn_id: str,
        removed: Iterable[Mapping[str, Any]] = (),
        data_change: bool = True,
        operation: str = "WRITE",
    ) -> LogState | None:
        """Write files and the commit that names them; None if another commit came first.

        What is not a transaction, since it has no `txn_seq`, says again what the last one said.
        """
        version = state.version + 1
        if self._is_cleaned(state.version):
            return None
        if "txn_seq" not in info:
            time = max(int(state.last.get("timestamp", 0)), int(info.get("timestamp", 0)))
            info = {**state.last, **info, "timestamp": time}
        put: list[str] = []
        is_tried = False
        try:
            adds = [self._put(file, put, data_change=data_change) for file in new]
            now = int(info.get("timestamp", 0)) // 1000
            actions: list[tuple[str, Mapping[str, Any]]] = [
                ("commitInfo", _commit_info(operation, info, txn_id, now, state.version))
            ]
            if "txn_seq" in info:
                known = {"appId": APP, "version": info["txn_seq"], "lastUpdated": now}
                actions.append(("txn", known))
            actions += [("remove", action) for action in removed]
            actions += [("add", action) for action in adds]
            content, is_tried = encode_commit(actions, version, previous=state.seal), True
            won = put_commit(self.store, version, content, txn_id)
        except BaseException as error:
            fate = fate_of(self.store, version, txn_id, error) if is_tried else False
            if fate is False:
                self.take_back(put)
            if fate is None and isinstance(error, StoreError):
                raise UnknownOutcomeError(
                    f"it is not known whether version {version} of {self.location} was written: "
                    f"{error.message}",
                    path=self.location,
                    hint="look whether the changes are there before you try again",
                ) from error
            raise
        if not won:
            self.take_back(put)
            return None
        files = dict(state.files)
        self._apply(Commit(version, _by_kind(actions)), files)
        return LogState(version, files, dict(info), seal_of(content))

    def _is_cleaned(self, base: int) -> bool:
        """Whether commits after a version have left the log: their numbers are not free."""
        try:
            check_not_cleaned(self.store, base, self.location)
        except CommitError:
            return True
        return False

    def take_back(self, paths: Iterable[str]) -> None:
        """Remove files that no commit names."""
        for path in paths:
            try:
                self.store.delete(path)
            except StoreError as error:
                _log.warning("%s of %s is of no use, but could not be removed: %s", path,
                             self.location, error.message)  # fmt: skip

    def _put(self, file: NewFile, put: list[str], *, data_change: bool) -> dict[str, Any]:
        folder = "".join(f"{name}={value}/" for name, value in file.partition.items())
        content, mark = sealed_bytes(file.content)
        path = f"{folder}part-{uuid.uuid4()}.{mark}.parquet"
        put.append(path)
        meta = self.store.put(path, content)
        return {
            "path": path,
            "partitionValues": dict(file.partition),
            "size": meta.size,
            "modificationTime": int(meta.modified.timestamp() * 1000),
            "dataChange": data_change,
            "stats": json.dumps({"numRecords": file.rows}),
            "tags": {DIGEST: blake3(content).hexdigest()},
        }

    def look_after(self, version: int, *, every: int = CHECKPOINT_EVERY) -> bool:
        """Write a checkpoint when it is time; whether it was."""
        if version == 0 or version % every:
            return False
        from millpond.kernel.write.checkpoint import write_checkpoint

        write_checkpoint(self.table())
        return True


def _by_kind(
    actions: Iterable[tuple[str, Mapping[str, Any]]],
) -> dict[str, list[dict[str, Any]]]:
    """Actions by their kind."""
    found: dict[str, list[dict[str, Any]]] = {}
    for kind, action in actions:
        found.setdefault(kind, []).append(dict(action))
    return found


def _said(commit: Commit) -> dict[str, Any]:
    return dict(commit.info.get(INFO) or {})


def _commit_info(
    operation: str, info: Mapping[str, Any], txn_id: str, now: int, base: int
) -> dict[str, Any]:
    return {
        "timestamp": now,
        "operation": operation,
        "operationParameters": {},
        "readVersion": base,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "engineInfo": engine_info(),
        "txnId": txn_id,
        INFO: dict(info),
    }
