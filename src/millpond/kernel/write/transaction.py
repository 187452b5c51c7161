"""`Transaction`: what is to change is gathered, then committed as one version, or not at all.

Commits are optimistic: other writers may come first, and only what this transaction relied on
decides whether it goes on behind them or is refused. `changing.py` gathers, this file commits.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from millpond.base.errors import (
    CommitError,
    MillpondError,
    ObjectNotFoundError,
    RepeatedTransactionError,
    StoreError,
)
from millpond.base.textseals import seal_of
from millpond.kernel.commits import read_commit
from millpond.kernel.features import is_catalog_managed
from millpond.kernel.snapshot import Snapshot
from millpond.kernel.table import DeltaTable
from millpond.kernel.times import ENABLED_TIME, ENABLED_VERSION, has_stated_times
from millpond.kernel.write.changing import Changing
from millpond.kernel.write.checksum import (
    checksum,
    commit_seal,
    counted_on,
    put_checksum,
    read_checksum,
)
from millpond.kernel.write.commit import (
    StagedCommit,
    Waiter,
    check_not_cleaned,
    encode_commit,
    is_final,
    is_ours,
    put_commit,
    stage_commit,
)
from millpond.kernel.write.conflicts import Mine, check_conflict
from millpond.kernel.write.info import engine_info, stated_time, time_of
from millpond.plan.arguments import whole_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from millpond.kernel.actions import Metadata
    from millpond.kernel.commits import Commit
    from millpond.kernel.write.conflicts import Isolation

CHECKPOINT_INTERVAL: Final = "delta.checkpointInterval"
MAX_RETRIES: Final = 100
_log = logging.getLogger("millpond.kernel")


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What became of a transaction."""

    version: int
    skipped: bool = False
    """Its app transaction was in the table already: nothing was written."""
    attempts: int = 1


class Transaction(Changing):
    """Changes of one table, which become visible together.

    >>> import tempfile
    >>> from millpond.kernel.write.create import create_table
    >>> from millpond.plan.types import LONG, STRING, Struct
    >>> table = create_table(tempfile.mkdtemp(), Struct.of(id=LONG, site=STRING))
    >>> with Transaction(table) as tx:
    ...     tx.append([{"id": 1, "site": "a"}, {"id": 2, "site": "b"}])
    >>> table.update().scan().to_arrow().num_rows
    2
    """

    result: CommitResult | None = None
    _trying: int | None = None
    """The version whose put has begun, and whose answer is not there yet."""
    _staged: int | None = None
    """The version that was staged."""
    _stated: int | None = None
    _base_checksum: dict[str, Any] | None = None
    _previous: str | None = None
    """The seal of the commit before, where it is known."""
    _seal: str | None = None
    """The seal of the commit that was put last."""

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.is_over:
            return
        if error is None:
            self.commit()
        else:
            self.rollback()

    def commit(
        self,
        *,
        max_retries: int = MAX_RETRIES,
        on_repeated: Literal["error", "skip"] = "error",
    ) -> CommitResult:
        """Make it a version of the table. If that fails, nothing is left behind."""
        self._step(None)
        whole_of(max_retries, "commit(max_retries=)")
        self._check_published()
        try:
            result = self._race(max_retries, on_repeated)
        except BaseException as error:
            found = self._after_failure(error)
            if found is None or not isinstance(error, Exception):
                raise
            result = found
        if result.skipped:
            self.rollback()
        else:
            self._committed(result)
            self._look_after(result.version)
        self.result = result
        return result

    def stage(self) -> StagedCommit:
        """Write the commit of the next version for a catalog to ratify; no reader sees it yet.

        If the catalog refuses it, `rollback()` takes it back.
        """
        self._step(None)
        version = self.base.version + 1
        try:
            self._refuse_repeated(self._known_transactions())
            self._complete()
            content = self._content(version, self._last_time())
            staged = stage_commit(self.store, self.table.location, version, content)
        except BaseException:
            self.rollback()
            raise
        self.pending.put.append(staged.path)
        self._staged = version
        self.is_over = True
        return staged

    def ratified(self, staged: StagedCommit, *, published: bool = False) -> DeltaTable:
        """The table once a catalog has ratified what was staged; nothing is read for it."""
        file = staged.published() if published else staged.ratified()
        older = self.base.segment
        segment = replace(older, version=staged.version, commits=(*older.commits, file))
        snapshot = Snapshot(segment, self._protocol(), self._stamped(staged.version))
        return DeltaTable(snapshot, self.table.settings)

    def rollback(self) -> None:
        """Give it up: everything that was put for it is removed. What is published stays."""
        self.is_over = True
        if not self._is_published():
            self._delete(self.pending.put)
        self.pending.put = []

    def _is_published(self) -> bool:
        """Whether what was staged is a version of the table now, or may be."""
        if self._staged is None:
            return False
        try:
            return is_ours(self.store, self._staged, self.txn_id)
        except StoreError:  # files of no use are better than a table without its files
            return True

    def _delete(self, paths: list[str]) -> None:
        for path in paths:
            try:
                self.store.delete(path)
            except StoreError as error:
                _log.warning("%s of %s is of no use, but could not be removed: %s", path,
                             self.table.location, error.message)  # fmt: skip

    # The race for a version

    def _race(self, max_retries: int, on_repeated: str) -> CommitResult:
        repeated = self._repeated(self._known_transactions())
        if repeated is not None:
            return self._skip(repeated, on_repeated, self.base.version)
        self._complete()
        check_not_cleaned(self.store, self.base.version, self.table.location)
        self._check_same_table()
        waiter = Waiter(retries=max_retries, table=self.table.location)
        self._previous = commit_seal(self._base_checksum)
        version, attempts = self.base.version + 1, 0
        last_time = self._last_time()
        while True:
            attempts += 1
            content = self._content(version, last_time)
            self._trying = version
            won = put_commit(self.store, version, content, self.txn_id)
            self._trying = None
            if won:
                return CommitResult(version, attempts=attempts)
            while (winner := self._winner(version)) is not None:
                repeated = self._repeated(_transactions(winner))
                if repeated is not None:
                    return self._skip(repeated, on_repeated, version)
                check_conflict(
                    winner, self._mine(), self.reads, self._isolation(), self.table.location
                )
                last_time = max(last_time or 0, time_of(winner) or 0) or None
                self._previous = winner.seal
                version += 1
            waiter.again()

    def _check_same_table(self) -> None:
        """Refuse to write into a table that has been made anew in the place of this one."""
        with suppress(StoreError):  # a checksum is a help: a table may well have none
            self._base_checksum = read_checksum(self.store, self.base.version)
        if not self._is_of_this_table(self._base_checksum):
            raise CommitError(
                f"there is another table at {self.table.location} than the one that was opened",
                table=self.table.location,
                hint="open it anew and try again",
            )

    def _is_of_this_table(self, known: Mapping[str, Any] | None) -> bool:
        metadata = (known or {}).get("metadata")
        return not isinstance(metadata, dict) or metadata.get("id") == self.base.metadata.id

    def _winner(self, version: int) -> Commit | None:
        try:
            return read_commit(self.store, version, self.table.location)
        except ObjectNotFoundError:
            return None

    def _mine(self) -> Mine:
        return Mine(
            frozenset(self.pending.removes),
            frozenset(self.pending.transactions),
            frozenset(self.pending.domains),
            self.metadata != self.base.metadata,
        )

    def _isolation(self) -> Isolation:
        """What only rearranges files can go by the snapshot that it saw."""
        rearranges = self.pending.has_files and not self.pending.changes_data
        return "SnapshotIsolation" if rearranges else self.isolation

    def _check_published(self) -> None:
        commits = self.base.segment.commits
        staged = bool(commits) and commits[-1].name.unique is not None
        if staged or is_catalog_managed(self._protocol()):
            raise CommitError(
                f"{self.table.location} is managed by a catalog, which has to ratify commits",
                table=self.table.location,
                hint="stage() the commit, and give it to the catalog",
            )

    def _after_failure(self, error: BaseException) -> CommitResult | None:
        """Take everything back, unless the commit stands, or may yet come to stand."""
        version, self._trying = self._trying, None
        if version is None:
            self.rollback()
            return None
        try:
            ours: bool | None = is_ours(self.store, version, self.txn_id)
        except StoreError:
            ours = None
        if ours:
            self.result = CommitResult(version)
            self._committed(self.result)
            return self.result
        if ours is False and is_final(self.store, error):
            self.rollback()
            return None
        _log.warning("it is not known whether version %d of %s was written; what was put for it "
                     "stays", version, self.table.location)  # fmt: skip
        self.is_over = True
        return None

    def _committed(self, result: CommitResult) -> None:
        """From here on nothing may be taken back."""
        self.is_over = True
        self.pending.put = []
        self.result = result

    # What the commit says

    def _complete(self) -> None:
        """The last things to write: what changed, where that has to be told, and less rubbish."""
        self._tell_changes()
        unused = self.pending.unused(self.table.location)
        self._delete(unused)
        self.pending.put = [path for path in self.pending.put if path not in unused]

    def _content(self, version: int, last_time: int | None) -> bytes:
        now = int(time.time() * 1000)
        self._stated = stated_time(now, last_time) if has_stated_times(self.view) else None
        head: list[tuple[str, Mapping[str, Any]]] = [("commitInfo", self._commit_info(now))]
        protocol, metadata = self._protocol(), self._stamped(version)
        if protocol != self.base.protocol:
            head.append(("protocol", protocol.to_dict()))
        if metadata != self.base.metadata:
            head.append(("metaData", metadata.to_dict()))
        content = encode_commit(
            [*head, *self.pending.actions(version)], version, previous=self._previous
        )
        self._seal = seal_of(content)
        return content

    def _commit_info(self, now: int) -> dict[str, Any]:
        info: dict[str, Any] = {}
        if self._stated is not None:
            info["inCommitTimestamp"] = self._stated
        info |= {"timestamp": now, **self.operation.to_dict()}
        info |= {
            "readVersion": self.base.version,
            "isolationLevel": self._isolation(),
            "isBlindAppend": self.reads.is_blind and not self.pending.removes,
            "operationMetrics": {
                "numAddedFiles": str(len(self.pending.adds)),
                "numRemovedFiles": str(len(self.pending.removes)),
                "numOutputRows": str(self.pending.output_rows),
            },
            "engineInfo": engine_info(),
            "txnId": self.txn_id,
        }
        if self.user_metadata is not None:
            info["userMetadata"] = self.user_metadata
        # What a caller adds may not stand in for what readers and other writers go by.
        return {**self.info, **info}

    def _stamped(self, version: int) -> Metadata:
        """Metadata that also says from when on commits state their times."""
        if self._stated is None or has_stated_times(self.base):
            return self.metadata
        known = {ENABLED_VERSION: str(version), ENABLED_TIME: str(self._stated)}
        return replace(self.metadata, configuration={**self.metadata.configuration, **known})

    def _last_time(self) -> int | None:
        """When the base version was committed, where commits state their times."""
        if not has_stated_times(self.view):
            return None
        segment = self.base.segment
        last = segment.commits[-1] if segment.commits else segment.checkpoint_commit
        if last is not None:
            path = last.path[len(self.table.location) + 1 :]
            found = time_of(read_commit(self.store, last.name.version, self.table.location, path))
            if found is None or not has_stated_times(self.base):
                # The commit that begins to state times comes after the file of the one before.
                return max(found or 0, last.modified)
            return found
        known = read_checksum(self.store, self.base.version) or {}
        stated = known.get("inCommitTimestampOpt")
        assert segment.checkpoint is not None
        return stated if isinstance(stated, int) else segment.checkpoint.files[0].modified

    # App transactions

    def _known_transactions(self) -> dict[str, int]:
        if not self.pending.transactions:
            return {}
        return {app: found.version for app, found in self.table.app_transactions.items()}

    def _repeated(self, known: Mapping[str, int]) -> tuple[str, int] | None:
        for app, version in self.pending.transactions.items():
            if app in known and known[app] >= version:
                return app, known[app]
        return None

    def _refuse_repeated(self, known: Mapping[str, int]) -> None:
        repeated = self._repeated(known)
        if repeated is None:
            return
        app, version = repeated
        raise RepeatedTransactionError(
            f"{self.table.location} has version {version} of the application {app!r} already; "
            f"this transaction brings {self.pending.transactions[app]}",
            table=self.table.location,
            hint="commit(on_repeated='skip') takes it as done",
        )

    def _skip(self, repeated: tuple[str, int], on_repeated: str, version: int) -> CommitResult:
        if on_repeated != "skip":
            self._refuse_repeated(dict([repeated]))
        return CommitResult(version, skipped=True)

    # Afterwards

    def _look_after(self, version: int) -> None:
        """A checksum where the one before is known, and a checkpoint when it is time.

        The commit stands whatever becomes of these: they only spare readers some work.
        """
        from millpond.kernel.write.checkpoint import write_checkpoint

        try:
            known = self._base_checksum if version - 1 == self.base.version else None
            known = known or read_checksum(self.store, version - 1)
            counted = counted_on(known, self.pending)
            if counted is not None and self._is_of_this_table(known):
                files, size = counted
                found = checksum(
                    self._protocol(),
                    self._stamped(version),
                    files=files,
                    size=size,
                    txn_id=self.txn_id,
                    stated_time=self._stated,
                    seal=self._seal,
                )
                put_checksum(self.store, version, found)
            interval = self.metadata.configuration.get(CHECKPOINT_INTERVAL, "10")
            if interval.isdigit() and int(interval) and version % int(interval) == 0:
                write_checkpoint(self.table.update())
        except (MillpondError, OSError, pa.ArrowException) as error:
            _log.warning("the upkeep after version %d of %s failed: %s", version,
                         self.table.location, error)  # fmt: skip


def _transactions(winner: Commit) -> dict[str, int]:
    return {t["appId"]: t["version"] for t in winner.actions.get("txn", ()) if "appId" in t}
