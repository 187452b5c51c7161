"""The control table out of the OpLog: `sync` adds what it lacks, `rebuild` makes it again.

The new table is written beside the old one and takes its place in one commit, after which the old
files are removed: a process that dies on the way leaves the old table or the new one.

The OpLog knows who the pond is and which transactions were committed, by whom and when; of those
whose commits have left its log it still knows number and time. It does not know settings, reads,
what failed and what ran after commits: these are taken from files of the old table, as far as they
can be read.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from blake3 import blake3

from millpond.base.errors import MillpondError, TableNotFoundError
from millpond.base.ids import TxnId
from millpond.fs.entry import to_micros
from millpond.fs.oplog.log import INFO
from millpond.fs.oplog.persistence import state_of
from millpond.fs.oplog.rowfile import RowFile
from millpond.kernel.names import LAST_CHECKPOINT, LOG_DIRECTORY
from millpond.steward.committing.recover import Recovery, recover
from millpond.steward.control.process import is_at_work
from millpond.steward.control.records import (
    CATEGORY,
    METADATA,
    TRANSACTION,
    Record,
    as_json,
    read_file,
)
from millpond.steward.control.settings import IDENTITY
from millpond.steward.control.upkeep import removal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millpond.steward.pond import Pond

PATIENCE_S: Final = 3600.0
"""What a process of another machine began so long ago is taken for dead."""
_log = logging.getLogger("millpond.steward")


@dataclass(frozen=True, slots=True)
class Synced:
    """What was put right."""

    recovery: Recovery
    added: tuple[int, ...] = ()
    """Transactions of which the control table did not know."""
    closed: int = 0
    """Notes of open transactions that were over."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing had to be done."""
        return self.recovery.is_clean and not (self.added or self.closed)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the new control table is made of."""

    added: tuple[int, ...]
    """Transactions that only the OpLog knew."""
    kept: int
    """Records that were taken from the old table."""
    settings: int
    unreadable: tuple[str, ...]
    """Files of the old table that are lost."""


def sync(pond: Pond) -> Synced:
    """Do what `recover` does, and add what the control table does not know."""
    control = pond.control
    added: tuple[int, ...] = ()
    try:
        control.newest_version()
    except TableNotFoundError:
        added = rebuild(pond).added
    recovery = recover(pond, patience_s=PATIENCE_S)
    control.flush()
    # In this order: what was committed is open by now, or is in the table afterwards.
    entries = committed(pond)
    opened = control.open.all()
    rows = control.rows_in(TRANSACTION, control.log.open())
    ids, seqs = (set(rows.column(name).to_pylist()) for name in ("txn_id", "txn_seq"))
    over = [txn_id for txn_id in opened if txn_id in ids]
    left = [found for txn_id, found in opened.items() if txn_id not in ids and _is_left(found)]
    if left:
        control.add([record for found in left for record in found])
    for txn_id in [*over, *(str(found[0].txn_id) for found in left)]:
        control.open.forget(txn_id)
    missing = [e for e in entries if e.txn_seq not in seqs and e.txn_id not in opened]
    if missing:
        control.append([record for entry in missing for record in entry.records()])
    if control.file.read() != control.metadata_rows(control.log.open()):
        control.keep_settings()
    added += tuple(entry.txn_seq for entry in missing)
    return Synced(recovery, tuple(sorted(added)), len(over) + len(left))


def _is_left(records: Sequence[Record]) -> bool:
    """Whether a transaction is over, and its process has not brought its records to the table."""
    said = next((r.environment for r in records if r.environment), None)
    process = json.loads(said or "{}").get("process", {})
    return any(r.is_end for r in records) and not is_at_work(str(records[0].txn_id), process)


def rebuild(pond: Pond) -> Rebuilt:
    """Make the control table again. No other process may write to the pond meanwhile."""
    control, store = pond.control, pond.control.log.store
    kept, unreadable, old = _salvaged(pond)
    settings = control.file.read()
    if settings is None:
        stored = sorted((r for r in kept if r.key is not None), key=lambda r: r.timestamp)
        settings = {str(r.key): r.value for r in stored if r.value is not None}
    settings |= pond.oplog.identity()
    seqs = {record.txn_seq for record in kept}
    opened = set(control.open.all())
    missing = [e for e in committed(pond) if e.txn_seq not in seqs and e.txn_id not in opened]
    records = [record for record in kept if record.record_category == TRANSACTION]
    records += [record for entry in missing for record in entry.records()]
    records += [
        Record(record_category=METADATA, record_type="set", key=key, value=value)
        for key, value in settings.items()
    ]
    log = [meta.path for meta in store.list(f"{LOG_DIRECTORY}/")]
    now = time.time_ns() // 1000
    control.replace(records, [removal(_category(path), path, now) for path in old])
    for path in (*log, *old):
        if path != f"{LOG_DIRECTORY}/{LAST_CHECKPOINT}":
            store.delete(path)
    changed = sum(not key.startswith(IDENTITY) for key in settings)
    return Rebuilt(tuple(e.txn_seq for e in missing), len(kept), changed, tuple(unreadable))


def _salvaged(pond: Pond) -> tuple[list[Record], list[str], list[str]]:
    """The records of all files that can be read, each once; the files that can't; all files."""
    store = pond.control.log.store
    found: dict[tuple[Any, ...], Record] = {}
    unreadable, old = [], []
    for meta in list(store.list(f"{CATEGORY}=")):
        old.append(meta.path)
        try:
            rows = read_file(store, meta.path, _category(meta.path)).to_pylist()
        except (pa.ArrowException, MillpondError, OSError) as error:
            _log.warning("%s of the control table can't be read: %s", meta.path, error)
            unreadable.append(meta.path)
            continue
        for row in rows:
            record = Record(**{**row, "timestamp": to_micros(row["timestamp"])})
            key = (record.txn_id, record.record_type, record.timestamp, record.key, record.value)
            found[key] = record
    return sorted(found.values(), key=lambda r: r.timestamp), unreadable, old


def _category(path: str) -> str:
    return path.partition("/")[0].removeprefix(f"{CATEGORY}=")


@dataclass(frozen=True, slots=True)
class Entry:
    """A transaction as the OpLog knows it."""

    txn_seq: int
    txn_id: str
    timestamp: int
    version: int | None = None
    """Of the OpLog; not known when its commit has left the log."""
    said: Mapping[str, Any] = field(default_factory=dict)

    def records(self) -> list[Record]:
        """What it would have recorded."""
        begin = Record(
            record_type="begin",
            txn_id=self.txn_id,
            based_on_seq=self.txn_seq - 1,
            timestamp=self.timestamp,
            transaction_type=self.said.get("kind", "write"),
            cli_args=as_json(self.said.get("args", self.said.get("message"))),
            parent_txn_seq=self.said.get("parent_txn_seq"),
            execution_seq=self.said.get("execution_seq"),
            factory_name=self.said.get("factory_name"),
            config_path=self.said.get("config_path"),
        )
        done = replace(begin, txn_seq=self.txn_seq, data_fs_version=self.version)
        return [
            begin,
            replace(done, record_type="data_committed", timestamp=self.timestamp + 1),
            replace(done, record_type="completed", timestamp=self.timestamp + 2),
        ]


def committed(pond: Pond) -> list[Entry]:
    """All transactions of the OpLog, oldest first."""
    found: dict[int, Entry] = {}
    log = pond.oplog.log
    for commit in log.table().history():
        said = commit.get(INFO) or {}
        seq = said.get("txn_seq", 0)
        # A commit of maintenance says again what the transaction before it said.
        if seq and commit.get("operation") == "WRITE":
            found[seq] = Entry(seq, said["txn_id"], said["timestamp"], commit["version"], said)
    pond_id = pond.oplog.identity().get("pond.id", "")
    for seq, timestamp in _in_rows(pond):
        if seq not in found:
            derived = TxnId.from_digest(blake3(f"{pond_id}/{seq}".encode()).digest())
            found[seq] = Entry(seq, str(derived), timestamp)
    return [found[seq] for seq in sorted(found)]


def _in_rows(pond: Pond) -> Iterable[tuple[int, int]]:
    """Numbers and times of transactions, as rows have them."""
    store = pond.oplog.log.store
    seen: dict[int, int] = {}
    for paths in state_of(pond.oplog.latest()).files.values():
        for path in paths:
            table = RowFile(store, path).columns("txn_seq", "timestamp")
            times = table.column("timestamp").cast(pa.int64()).to_pylist()
            seen.update(zip(table.column("txn_seq").to_pylist(), times, strict=True))
    return seen.items()
