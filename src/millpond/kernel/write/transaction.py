"""`Transaction`: what is to change is gathered, then committed as one version, or not at all.

Commits are optimistic: other writers may come first, and only what this transaction relied on
decides whether it goes on behind them or is refused.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from millpond.base.errors import (
    CommitError,
    MillpondError,
    ObjectNotFoundError,
    PlanError,
    RepeatedTransactionError,
    SchemaError,
)
from millpond.base.store import open_store
from millpond.kernel.actions import ADD, Metadata
from millpond.kernel.scan import ScanBuilder
from millpond.kernel.times import ENABLED, ENABLED_VERSION, has_stated_times
from millpond.kernel.write.commit import (
    StagedCommit,
    Waiter,
    encode_commit,
    put_commit,
    read_winner,
    stage_commit,
)
from millpond.kernel.write.conflicts import (
    ISOLATIONS,
    Isolation,
    Mine,
    Reads,
    check_conflict,
    key_of,
)
from millpond.kernel.write.delete import (
    CHANGE_TYPE,
    deleted_rows,
    find_rows,
    mark_rows,
    remaining,
)
from millpond.kernel.write.features import (
    check_may_remove,
    check_writable,
    has_change_feed,
    writes_deletion_vectors,
)
from millpond.kernel.write.files import Target, WrittenFile, remove_files, write_rows
from millpond.kernel.write.protocol import mapped, needed_protocol
from millpond.kernel.write.rows import batches_of
from millpond.plan.arrow import to_arrow
from millpond.plan.typejson import schema_to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from millpond.base.settings import Settings
    from millpond.kernel.actions import Protocol
    from millpond.kernel.snapshot import Snapshot
    from millpond.kernel.table import DeltaTable
    from millpond.kernel.write.conflicts import Winner
    from millpond.plan.executor import Executor
    from millpond.plan.expr import Expr
    from millpond.plan.types import Struct

CHECKPOINT_INTERVAL: Final = "delta.checkpointInterval"
_log = logging.getLogger("millpond.kernel")
MAX_RETRIES: Final = 100
ENGINE_INFO: Final = "Millpond/0.1.0"


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What became of a transaction."""

    version: int
    skipped: bool = False
    """Its app transaction was in the table already: nothing was written."""
    attempts: int = 1


class Transaction:
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

    def __init__(
        self,
        table: DeltaTable,
        *,
        operation: str | None = None,
        isolation: Isolation = "WriteSerializable",
        user_metadata: str | None = None,
        info: Mapping[str, Any] | None = None,
        engine: str | Executor = "auto",
        settings: Settings | None = None,
    ) -> None:
        if isolation not in ISOLATIONS:
            raise PlanError(
                f"unknown isolation {isolation!r}", hint=f"one of {', '.join(ISOLATIONS)}"
            )
        check_writable(table.snapshot)
        self.table = table
        self._settings = settings
        self.store = open_store(table.location, settings=settings)
        self.isolation = isolation
        self.txn_id = str(uuid.uuid4())
        self.result: CommitResult | None = None
        self._engine = engine
        self._operation = operation
        self._parameters: dict[str, Any] = {}
        self._user_metadata = user_metadata
        self._info = dict(info or {})
        self._metadata = table.snapshot.metadata
        self._schema_changed = False
        self._adds: list[dict[str, Any]] = []
        self._removes: dict[Any, dict[str, Any]] = {}
        self._cdc: list[dict[str, Any]] = []
        self._written: list[WrittenFile] = []
        self._loose: list[str] = []
        self._txns: dict[str, int] = {}
        self._domains: dict[str, dict[str, Any]] = {}
        self._reads = Reads()
        self._tables = 0
        self._base: Snapshot | None = table.snapshot

    # What is to change

    def append(self, data: Any) -> None:
        """Add rows: an Arrow table, a plan, a DataFrame or dictionaries."""
        self._open("WRITE", mode="Append")
        files = write_rows(self._target(), batches_of(data, self._schema, engine=self._engine))
        self._written += files
        self._adds += [file.to_add() for file in files]

    def overwrite(self, data: Any, predicate: Expr | None = None) -> None:
        """Exchange all rows, or those that satisfy a predicate; new rows have to satisfy it."""
        if predicate is None:
            self._open("WRITE", mode="Overwrite")
            self._remove_all()
            self.append(data)
            return
        self._open("WRITE", mode="Overwrite", predicate=str(predicate))
        self.delete(predicate)
        self.append(_checked(data, predicate, self._schema, self._engine))

    def delete(self, predicate: Expr | None = None) -> int:
        """Delete the rows that satisfy a predicate, or all; says how many those are.

        Rows are marked where the table allows deletion vectors; otherwise the files that hold them
        are written anew.
        """
        self._open("DELETE", predicate=json.dumps([] if predicate is None else [str(predicate)]))
        check_may_remove(self._snapshot)
        if predicate is None:
            return self._remove_all()
        touched, looked_at = find_rows(self._snapshot, predicate, engine=self._engine)
        self._reads.files |= {key_of(add) for add in looked_at}
        self._reads.matches.append(_matcher(self._snapshot, predicate))
        if not touched:
            return 0
        for item in touched:
            self._remove(item.add)
        if writes_deletion_vectors(self._snapshot.protocol, self._metadata):
            marked = mark_rows(touched)
            if marked is not None:
                path, content, adds = marked
                self.store.put(path, content)
                self._loose.append(path)
                self._adds += adds
        else:
            self._rewrite([item for item in touched if not item.is_gone])
            if has_change_feed(self._metadata):
                changes = deleted_rows(self._snapshot, touched, engine=self._engine)
                target = replace(self._target(), subdirectory="_change_data", extra=(CHANGE_TYPE,))
                files = write_rows(target, changes.execute(engine=self._engine))
                self._written += files
                self._cdc += [_cdc(file) for file in files]
        return sum(len(item.after) - len(item.before) for item in touched)

    def _rewrite(self, touched: list[Any]) -> None:
        if not touched:
            return
        plan = remaining(self._snapshot, touched, engine=self._engine)
        files = write_rows(self._target(), plan.execute(engine=self._engine))
        self._written += files
        self._adds += [file.to_add() for file in files]

    def remove_files(self, paths: Iterable[str], *, data_change: bool = True) -> None:
        """Remove live files by the paths that `files()` gives."""
        self._open("DELETE")
        if data_change:
            check_may_remove(self._snapshot)
        wanted = set(paths)
        for add in self._live():
            if add["path"] in wanted:
                wanted.discard(add["path"])
                self._reads.files.add(key_of(add))
                self._remove(add, data_change=data_change)
        if wanted:
            raise CommitError(
                f"{sorted(wanted)[0]} is no live file of {self.table.location}",
                table=self.table.location,
                hint="see files() for those that are",
            )

    def add_files(self, adds: Iterable[Mapping[str, Any]]) -> None:
        """Make files part of the table that are there already: add actions as dictionaries."""
        self._open("WRITE", mode="Append")
        for add in adds:
            unknown = [name for name in add if name not in ADD]
            if unknown or not isinstance(add.get("path"), str):
                raise SchemaError(
                    f"{unknown[0]!r} is no member of an add action"
                    if unknown
                    else "an add action needs a path",
                    hint=f"members are: {', '.join(ADD.names)}",
                )
            self._adds.append({"dataChange": True, "partitionValues": {}, **add})

    def set_metadata(
        self,
        *,
        schema: Struct | None = None,
        configuration: Mapping[str, str | None] | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        """Change the table itself. A property that is set to None is removed."""
        self._open("SET TBLPROPERTIES" if schema is None else "CHANGE COLUMN")
        if self._adds or self._removes:
            raise CommitError(
                "metadata is set before rows are written",
                table=self.table.location,
                hint="call set_metadata() first",
            )
        known = dict(self._metadata.configuration)
        for key, value in (configuration or {}).items():
            if value is None:
                known.pop(key, None)
            else:
                known[key] = value
        new = schema if schema is not None else self._metadata.schema
        new, known = mapped(new, known)
        self._metadata = replace(
            self._metadata,
            schema_string=schema_to_json(new),
            configuration=known,
            name=self._metadata.name if name is None else name,
            description=self._metadata.description if description is None else description,
        )

    def app_transaction(self, app_id: str, version: int) -> None:
        """Note how far an application has written; the same version again is a repetition."""
        self._open(None)
        self._txns[app_id] = version

    def domain_metadata(
        self, domain: str, configuration: str = "", *, removed: bool = False
    ) -> None:
        """Set or remove a domain."""
        self._open(None)
        if domain.startswith("delta."):
            raise CommitError(
                f"domains that begin with 'delta.' are Delta's own: {domain!r}",
                table=self.table.location,
            )
        self._domains[domain] = {
            "domain": domain,
            "configuration": configuration,
            "removed": removed,
        }

    # How it ends

    def commit(
        self,
        *,
        max_retries: int = MAX_RETRIES,
        on_repeated: Literal["error", "skip"] = "error",
    ) -> CommitResult:
        """Make it a version of the table. If that fails, nothing is left behind."""
        self._open(None)
        try:
            self.result = self._commit(max_retries, on_repeated)
        except BaseException:
            self.rollback()
            raise
        if self.result.skipped:
            self.rollback()
        else:
            self._after_commit(self.result.version)
        self._base = None
        return self.result

    def _after_commit(self, version: int) -> None:
        """A checksum where the one before is known, and a checkpoint when it is time.

        The commit stands whatever becomes of these: they only spare readers some work.
        """
        try:
            self._write_checksum(version)
            interval = self._metadata.configuration.get(CHECKPOINT_INTERVAL, "10")
            if interval.isdigit() and int(interval) and version % int(interval) == 0:
                from millpond.kernel.write.checkpoint import write_checkpoint

                write_checkpoint(self.table.update(), settings=self._settings)
        except MillpondError as error:
            _log.warning("the upkeep after version %d of %s failed: %s", version,
                         self.table.location, error.message)  # fmt: skip

    def _write_checksum(self, version: int) -> None:
        from millpond.kernel.write.upkeep import checksum, put_checksum, read_checksum

        known = read_checksum(self.store, version - 1)
        try:
            files, size = int(known["numFiles"]), int(known["tableSizeBytes"])  # type: ignore[index]
        except (TypeError, KeyError, ValueError):
            return
        sizes = [r["size"] for r in self._removes.values() if isinstance(r.get("size"), int)]
        if len(sizes) < len(self._removes) or version != self._snapshot.version + 1:
            return
        files += len(self._adds) - len(self._removes)
        size += sum(int(add.get("size") or 0) for add in self._adds) - sum(sizes)
        new = replace(self._snapshot, protocol=self._protocol(), metadata=self._metadata)
        put_checksum(self.store, version, checksum(new, files=files, size=size, txn_id=self.txn_id))

    def _commit(self, max_retries: int, on_repeated: str) -> CommitResult:
        repeated = self._repeated(self._known_transactions())
        if repeated is not None:
            return self._skip(repeated, on_repeated, self._snapshot.version)
        version = self._snapshot.version + 1
        waiter = Waiter(retries=max_retries, table=self.table.location, version=version)
        attempts = 0
        last_time = self._last_time()
        while True:
            attempts += 1
            content = self._content(version, last_time)
            if put_commit(self.store, version, content, self.txn_id):
                return CommitResult(version, attempts=attempts)
            while (winner := self._winner(version)) is not None:
                repeated = self._repeated_by(winner)
                if repeated is not None:
                    return self._skip(repeated, on_repeated, winner.version)
                check_conflict(
                    winner, self._mine(), self._reads, self.isolation, self.table.location
                )
                last_time = _stated_time(winner, last_time)
                version += 1
            waiter.again()

    def _winner(self, version: int) -> Winner | None:
        try:
            return read_winner(self.store, version, self.table.location)
        except ObjectNotFoundError:
            return None

    def stage(self) -> StagedCommit:
        """Write the commit of the next version for a catalog to ratify; no reader sees it yet."""
        self._open(None)
        version = self._snapshot.version + 1
        try:
            content = self._content(version, self._last_time())
            staged = stage_commit(self.store, self.table.location, version, content)
        except BaseException:
            self.rollback()
            raise
        self._base = None
        return staged

    def rollback(self) -> None:
        """Give it up: files that were written for it are removed."""
        remove_files(self.store, self._written)
        for path in self._loose:
            self.store.delete(path)
        self._written, self._loose = [], []
        self._base = None

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._base is None:
            return
        if error is None:
            self.commit()
        else:
            self.rollback()

    # What a commit says

    @property
    def _snapshot(self) -> Snapshot:
        assert self._base is not None
        return self._base

    @property
    def _schema(self) -> Struct:
        return _changed(self._snapshot, self._metadata).plain_schema

    def _open(self, operation: str | None, **parameters: Any) -> None:
        if self._base is None:
            raise CommitError(
                "this transaction is over",
                table=self.table.location,
                hint="begin another one",
            )
        if operation is not None and self._operation is None:
            self._operation = operation
            self._parameters = parameters

    def _target(self) -> Target:
        changed = _changed(self._snapshot, self._metadata)
        return Target(self.store, changed.columns, self._metadata)

    def _live(self) -> list[dict[str, Any]]:
        machine = ScanBuilder(self._snapshot).machine(
            "arrow" if self._engine == "auto" else self._engine
        )
        return [row for b in machine for row in b.to_pylist(maps_as_pydicts="lossy")]

    def _remove_all(self) -> int:
        check_may_remove(self._snapshot)
        adds = self._live()
        for add in adds:
            self._reads.files.add(key_of(add))
            self._remove(add)
        self._reads.matches.append(lambda adds: [True] * len(adds))
        return sum(_rows(add) for add in adds)

    def _remove(self, add: Mapping[str, Any], *, data_change: bool = True) -> None:
        kept = ("partitionValues", "size", "tags", "deletionVector", "baseRowId")
        found = {
            "path": add["path"],
            "deletionTimestamp": int(time.time() * 1000),
            "dataChange": data_change,
            "extendedFileMetadata": True,
        }
        known = {name: add[name] for name in kept if add.get(name) is not None}
        vector = known.get("deletionVector")
        if vector is not None:
            known["deletionVector"] = {k: v for k, v in vector.items() if v is not None}
        self._removes[key_of(add)] = {**found, **known}

    def _content(self, version: int, last_time: int | None) -> bytes:
        actions: list[tuple[str, Mapping[str, Any]]] = [
            ("commitInfo", self._commit_info(version, last_time))
        ]
        protocol = self._protocol()
        if protocol != self._snapshot.protocol:
            actions.append(("protocol", protocol.to_dict()))
        metadata = self._stamped(version, last_time)
        if metadata != self._snapshot.metadata:
            actions.append(("metaData", metadata.to_dict()))
        now = int(time.time() * 1000)
        actions += [
            ("txn", {"appId": app, "version": number, "lastUpdated": now})
            for app, number in self._txns.items()
        ]
        actions += [("domainMetadata", domain) for domain in self._domains.values()]
        actions += [("remove", remove) for remove in self._removes.values()]
        actions += [("add", _without_nulls(add)) for add in self._adds]
        actions += [("cdc", cdc) for cdc in self._cdc]
        return encode_commit(actions)

    def _protocol(self) -> Protocol:
        """The protocol that the table has after this transaction."""
        return needed_protocol(
            self._metadata.schema,
            self._metadata.configuration,
            domains=bool(self._domains),
            old=self._snapshot.protocol,
        )

    def _commit_info(self, version: int, last_time: int | None) -> dict[str, Any]:
        now = int(time.time() * 1000)
        info: dict[str, Any] = {}
        if self._states_time:
            info["inCommitTimestamp"] = now if last_time is None else max(now, last_time + 1)
        info |= {
            "timestamp": now,
            "operation": self._operation or "WRITE",
            "operationParameters": {k: v for k, v in self._parameters.items() if v is not None},
            "readVersion": version - 1 if self._reads.is_blind else self._snapshot.version,
            "isolationLevel": self.isolation,
            "isBlindAppend": self._reads.is_blind and not self._removes and bool(self._adds),
            "operationMetrics": {
                "numAddedFiles": str(len(self._adds)),
                "numRemovedFiles": str(len(self._removes)),
                "numOutputRows": str(sum(file.rows for file in self._written)),
            },
            "engineInfo": ENGINE_INFO,
            "txnId": self.txn_id,
        }
        if self._user_metadata is not None:
            info["userMetadata"] = self._user_metadata
        return info | self._info

    @property
    def _states_time(self) -> bool:
        return self._metadata.configuration.get(ENABLED, "").lower() == "true"

    def _stamped(self, version: int, last_time: int | None) -> Metadata:
        """Metadata that also says from when on commits state their times."""
        if not self._states_time or has_stated_times(self._snapshot):
            return self._metadata
        now = max(int(time.time() * 1000), (last_time or 0) + 1)
        known = {
            **self._metadata.configuration,
            ENABLED_VERSION: str(version),
            "delta.inCommitTimestampEnablementTimestamp": str(now),
        }
        return replace(self._metadata, configuration=known)

    def _last_time(self) -> int | None:
        if not self._states_time:
            return None
        try:
            winner = read_winner(self.store, self._snapshot.version, self.table.location)
        except ObjectNotFoundError:
            commits = self._snapshot.segment.commits
            return commits[-1].modified if commits else None
        return _stated_time(winner, None)

    def _mine(self) -> Mine:
        changes = self._metadata != self._snapshot.metadata
        protocol = self._protocol()
        return Mine(
            frozenset(self._removes),
            frozenset(self._txns),
            frozenset(self._domains),
            changes,
            protocol != self._snapshot.protocol,
        )

    # App transactions

    def _known_transactions(self) -> dict[str, int]:
        if not self._txns:
            return {}
        known = self.table.app_transactions
        return {app: known[app].version for app in self._txns if app in known}

    def _repeated(self, known: Mapping[str, int]) -> tuple[str, int] | None:
        for app, version in self._txns.items():
            if app in known and known[app] >= version:
                return app, known[app]
        return None

    def _repeated_by(self, winner: Winner) -> tuple[str, int] | None:
        known = {t["appId"]: t["version"] for t in winner.actions.get("txn", ()) if "appId" in t}
        return self._repeated(known)

    def _skip(self, repeated: tuple[str, int], on_repeated: str, version: int) -> CommitResult:
        app, known = repeated
        if on_repeated == "skip":
            return CommitResult(version, skipped=True)
        raise RepeatedTransactionError(
            f"{self.table.location} has version {known} of the application {app!r} already; "
            f"this transaction brings {self._txns[app]}",
            table=self.table.location,
            hint="commit(on_repeated='skip') takes it as done",
        )


def _changed(snapshot: Snapshot, metadata: Metadata) -> Snapshot:
    return snapshot if metadata is snapshot.metadata else replace(snapshot, metadata=metadata)


def _without_nulls(add: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in add.items() if value is not None}
    vector = found.get("deletionVector")
    if vector is not None:
        found["deletionVector"] = {k: v for k, v in vector.items() if v is not None}
    return found


def _cdc(file: WrittenFile) -> dict[str, Any]:
    add = file.to_add(data_change=False)
    return {name: add[name] for name in ("path", "partitionValues", "size", "dataChange")}


def _rows(add: Mapping[str, Any]) -> int:
    try:
        rows = int(json.loads(add.get("stats") or "{}").get("numRecords") or 0)
    except (ValueError, TypeError, AttributeError):
        return 0
    return rows - int((add.get("deletionVector") or {}).get("cardinality") or 0)


def _stated_time(winner: Winner, known: int | None) -> int | None:
    info = winner.actions.get("commitInfo") or ({},)
    found = info[0].get("inCommitTimestamp", info[0].get("timestamp"))
    return max(found, known or 0) if isinstance(found, int) else known


def _matcher(
    snapshot: Snapshot, predicate: Expr
) -> Callable[[Sequence[Mapping[str, Any]]], Sequence[bool]]:
    """Which of some adds may hold rows for a predicate."""
    from millpond.plan.make import values

    scan = ScanBuilder(snapshot).with_columns("path").with_predicate(predicate).build()

    def matches(adds: Sequence[Mapping[str, Any]]) -> Sequence[bool]:
        if scan.skipping is None:
            return [True] * len(adds)
        rows = pa.array([dict(add) for add in adds], to_arrow(ADD))
        kept = scan.rows(values(pa.table([rows], names=["add"]))).to_arrow(engine="arrow")
        paths = set(kept.column("path").to_pylist())
        return [add["path"] in paths for add in adds]

    return matches


def _checked(data: Any, predicate: Expr, schema: Struct, engine: str | Executor) -> pa.Table:
    """Rows that all satisfy a predicate, or an error."""
    from millpond.plan.arrow import to_arrow_schema
    from millpond.plan.make import values

    batches = list(batches_of(data, schema, engine=engine))
    table = pa.Table.from_batches(batches, to_arrow_schema(schema))
    wrong = values(table).filter(~predicate.coalesce(False)).head(1).to_pylist(engine="arrow")
    if wrong:
        raise SchemaError(
            f"a new row does not satisfy the predicate of the overwrite: {wrong[0]}",
            hint="overwrite with a predicate that all new rows satisfy",
        )
    return table
