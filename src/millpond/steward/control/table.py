"""The control table: what was done in a pond, when and by whom; its identity and its settings.

It is a Delta table of its own and can be made again from the OpLog (`control_rebuild`), so a record
that could not be written is a warning, never a reason to undo data, and none is waited for until it
is on the disk. Transactions that are open have their records in files beside it (`opened`).
"""

from __future__ import annotations

import json
import logging
import random
import threading
import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from millpond.base.clock import Clock, SystemClock
from millpond.base.errors import (
    MillpondError,
    ObjectNotFoundError,
    PondError,
    TableNotFoundError,
    TransactionNotFoundError,
)
from millpond.base.redact import safe_info
from millpond.base.store import open_store
from millpond.base.store.children import children
from millpond.fs.entry import to_micros
from millpond.fs.oplog.log import LogState, NewFile, RowLog
from millpond.kernel.names import LAST_CHECKPOINT, LOG_DIRECTORY, parse_name, version_prefix
from millpond.steward.control.opened import OpenTransactions
from millpond.steward.control.records import (
    CATEGORY,
    METADATA,
    SCHEMA,
    TRANSACTION,
    Record,
    Transaction,
    as_json,
    empty_table,
    from_parquet,
    read_file,
    to_parquet,
    transactions,
)
from millpond.steward.control.settings import SettingsFile, checked, typed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millpond.base.settings import Settings
    from millpond.plan.node import Plan

DIRECTORY: Final = "control"
MOST_ATTEMPTS: Final = 500
FEW_ATTEMPTS: Final = 3
"""So often a race is run for records that can wait."""
MOST_STEPS: Final = 8
COMPACT_EVERY: Final = 250
"""After so many commits small files are written as one, and a checkpoint."""
KNOWN_SECONDS: Final = 10.0
"""So long settings are taken as they were last read."""
PROPERTIES: Final = {
    "delta.checkpointInterval": "1000000",  # it is written when files are
    "delta.logRetentionDuration": "interval 10 minutes",
    "delta.deletedFileRetentionDuration": "interval 10 minutes",
}
_log = logging.getLogger("millpond.steward")

__all__ = ["Control", "Detail", "Record", "as_json"]


@dataclass(frozen=True, slots=True)
class Detail:
    """All that is known of one transaction."""

    transaction: Transaction
    records: list[dict[str, Any]]
    followers: list[Transaction]
    """What ran after it."""


class Control:
    """The control table of one pond."""

    def __init__(
        self, location: str, *, clock: Clock | None = None, settings: Settings | None = None
    ) -> None:
        place = f"{location}/{DIRECTORY}"
        self.log = RowLog(place, CATEGORY, settings=settings, durable=False)
        self.open = OpenTransactions(self.log.store)
        self.file = SettingsFile(open_store(place, settings=settings))
        self._clock = clock or SystemClock()
        self._version: int | None = None
        """The newest that is known: to append, no more has to be."""
        self._waiting: dict[str, list[Record]] = {}
        """Transactions that are over, and whose records are to go to the table with the next."""
        self._lock = threading.Lock()
        self._last_stamp = 0
        self._known: tuple[float, dict[str, str]] | None = None

    def create(self) -> None:
        """Make the table, if it is not there."""
        try:
            self._version = self.newest_version()
        except TableNotFoundError:
            self._version = self.log.create(
                SCHEMA, {}, name="control", configuration=PROPERTIES
            ).version

    def replace(
        self, records: Sequence[Record], removed: Sequence[Mapping[str, Any]]
    ) -> dict[str, str]:
        """Make the table again with these records alone, and return its settings."""
        rows = [self._stamped(record) for record in records]
        files = _files(rows)
        version = self.log.replace(
            SCHEMA, files, removed=removed, name="control", configuration=PROPERTIES
        )
        if version is None:
            raise PondError(
                "another process has just written to the control table",
                hint="stop other writers of the pond, then try again",
            )
        self._version = version
        self.keep_settings()
        return self.metadata()

    def newest_version(self) -> int:
        """The table's newest version, as the names in its log say: nothing else is read."""
        store, prefix = self.log.store, f"{LOG_DIRECTORY}/"
        try:
            hint = json.loads(store.get(prefix + LAST_CHECKPOINT))["version"]
            start = version_prefix(int(hint))
        except (ObjectNotFoundError, ValueError, KeyError, TypeError, RecursionError):
            start = None
        for start_from in (start, None):
            metas = children(store, prefix, start_from=start_from)
            names = [parse_name(meta.path[len(prefix) :]) for meta in metas]
            found = [n.version for n in names if n and n.kind in ("commit", "checkpoint")]
            if found:
                return max(found)
        raise TableNotFoundError(
            f"the control table {self.log.location} is not there",
            table=self.log.location,
            hint="make it again: pond control rebuild",
        )

    def _newest_after(self, version: int) -> int:
        """The same, for one who was overtaken: the next few versions are tried by name."""
        for known in range(version, version + MOST_STEPS):
            if not self.log.has(known + 1):
                # Without even one that is newer, the log has been cleaned up beyond it.
                return known if known > version else self.newest_version()
        return self.newest_version()

    # Writing

    def record(self, *records: Record) -> None:
        """Append records; a failure is told and goes no further."""
        try:
            self.append(records)
        except (MillpondError, OSError, pa.ArrowException) as error:
            _log.warning("the control table could not be written: %s", error)

    def append(self, records: Sequence[Record]) -> None:
        """Append records, behind whatever others append.

        Those of a transaction that goes on are noted beside the table until it ends.
        """
        rows: list[Record] = []
        by_txn: dict[str, list[Record]] = {}
        for record in map(self._stamped, records):
            if record.txn_id is None or record.transaction_type == "read":
                rows.append(record)
            else:
                by_txn.setdefault(record.txn_id, []).append(record)
        over = {txn_id for txn_id, found in by_txn.items() if any(r.is_end for r in found)}
        for txn_id, found in by_txn.items():
            if txn_id in over:
                rows += [*self.open.taken(txn_id), *found]
            else:
                self.open.note(txn_id, found)
        if rows:
            self._end(rows, over)

    def _end(self, rows: list[Record], over: set[str]) -> None:
        """Put what is over into the table; where many race for it, wait for the next time.

        Until then it is noted beside the table, like a transaction that goes on.
        """
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        kept = [r for records in waiting.values() for r in records]
        patient = any(row.record_category == METADATA for row in rows)
        try:
            if self.add([*kept, *rows], attempts=MOST_ATTEMPTS if patient else FEW_ATTEMPTS):
                for txn_id in (*over, *waiting):
                    self.open.forget(txn_id)
                waiting = {}
                return
            for row in rows:
                waiting.setdefault(str(row.txn_id), []).append(row)
            for txn_id in {str(row.txn_id) for row in rows}:
                self.open.write(txn_id, waiting[txn_id])
        finally:
            with self._lock:
                self._waiting = {**waiting, **self._waiting}

    def flush(self) -> None:
        """Put what waits into the table."""
        if self._waiting:
            self._end([], set())

    def record_read(self, txn_seq: int, info: Mapping[str, Any]) -> None:
        """Note that somebody has read the pond as it is after a transaction."""
        from millpond.base.ids import TxnId

        self.record(
            Record(
                record_type="completed",
                txn_id=str(TxnId.new()),
                based_on_seq=txn_seq,
                transaction_type="read",
                cli_args=as_json(safe_info(info).get("args")),
                environment=as_json(safe_info(info).get("environment", {})),
            )
        )

    def _stamped(self, record: Record) -> Record:
        """A record with its time; of one process, no two have the same."""
        if record.timestamp:
            return record
        self._last_stamp = max(to_micros(self._clock.now()), self._last_stamp + 1)
        return replace(record, timestamp=self._last_stamp)

    def add(self, rows: Sequence[Record], *, attempts: int = MOST_ATTEMPTS) -> bool:
        """Put rows into the table, as they are; whether that went, if few attempts are made."""
        files = _files(rows)
        now, txn_id = to_micros(self._clock.now()), str(uuid.uuid4())
        if self._version is None:
            self._version = self.newest_version()
        state = LogState(self._version, {})
        for attempt in range(attempts):
            made = self.log.commit(state, files, {"timestamp": now}, txn_id=txn_id)
            if made is not None:
                self._version = made.version
                self._look_after(made.version)
                return True
            time.sleep(random.uniform(0, min(0.05, 0.002 * (attempt + 1))))
            self._version = self._newest_after(self._version)
            state = LogState(self._version, {})
        if attempts < MOST_ATTEMPTS:
            return False
        raise PondError("the control table is busy", hint="try again")

    def _look_after(self, version: int) -> None:
        from millpond.steward.control.upkeep import look_after

        if version % COMPACT_EVERY:
            return
        try:
            look_after(self.log)
        except (MillpondError, OSError, pa.ArrowException) as error:
            _log.warning("the control table could not be looked after: %s", error)

    # Reading

    def rows_in(self, category: str, state: LogState) -> pa.Table:
        """The rows of one category, in any order."""
        paths = state.files.get(category, ())
        tables = [read_file(self.log.store, path, category) for path in paths]
        return pa.concat_tables([empty_table(), *tables])

    def table(self) -> pa.Table:
        """All records, oldest first; those of open transactions, too."""
        opened = self.open.all()
        state = self.log.open()
        parts = [self.rows_in(category, state) for category in (METADATA, TRANSACTION)]
        still = _still_open(opened, parts[1])
        return pa.concat_tables([*parts, *still]).sort_by("timestamp")

    def records(self) -> list[dict[str, Any]]:
        """All records, oldest first."""
        found: list[dict[str, Any]] = self.table().to_pylist()
        return found

    def to_plan(self) -> Plan:
        """All records as a plan, for any engine: `sql("select … from control", control=…)`."""
        from millpond.plan.make import values

        opened = self.open.all()
        table = self.log.table()
        plan = table.scan().plan()
        if not opened:
            return plan
        still = _still_open(opened, self.rows_in(TRANSACTION, self.log.open(table.version)))
        return plan.union(*(values(rows, SCHEMA) for rows in still))

    # Transactions

    def recent(self, limit: int = 20) -> list[Transaction]:
        """The last transactions, newest first."""
        table = self.table()
        known = table.filter(pc.equal(table.column(CATEGORY), TRANSACTION))
        ids = known.column("txn_id").drop_null().combine_chunks()
        if not len(ids) or limit < 1:
            return []
        newest = pc.unique(ids.take(pa.array(range(len(ids) - 1, -1, -1)))).slice(0, limit)
        rows = known.filter(pc.is_in(known.column("txn_id"), newest)).to_pylist()
        order = {txn_id: number for number, txn_id in enumerate(newest.to_pylist())}
        return sorted(transactions(rows), key=lambda found: order[found.txn_id])

    def incomplete(self) -> list[Transaction]:
        """Transactions that have begun and not ended, oldest first."""
        opened = self.open.all()
        if not opened:
            return []
        still = _still_open(opened, self.rows_in(TRANSACTION, self.log.open()))
        found = transactions(row for rows in still for row in rows.to_pylist())
        return [each for each in found if not each.is_over]

    def detail(self, key: int | str) -> Detail:
        """One transaction, by its number, its id, or how its id begins."""
        rows = [row for row in self.records() if row[CATEGORY] == TRANSACTION]
        if isinstance(key, int):
            wanted = {row["txn_id"] for row in rows if row["txn_seq"] == key}
        else:
            wanted = {i for row in rows if (i := row["txn_id"]) and i.startswith(key)}
        if len(wanted) != 1:
            what = "is no transaction" if not wanted else f"begins {len(wanted)} transactions"
            kind = PondError if wanted else TransactionNotFoundError
            raise kind(
                f"{key!r} {what} of the control table",
                hint="pond control recent lists them; pond control sync looks for missing ones",
            )
        mine = [row for row in rows if row["txn_id"] in wanted]
        found = transactions(mine)[0]
        seq = found.txn_seq
        after = [row for row in rows if seq is not None and row["parent_txn_seq"] == seq]
        return Detail(found, mine, transactions(after))

    # Settings

    def metadata(self) -> dict[str, str]:
        """Identity and settings: the newest value of each."""
        now = self._clock.monotonic()
        if self._known is not None and now - self._known[0] < KNOWN_SECONDS:
            return dict(self._known[1])
        found = self.file.read()
        if found is None:
            found = self.metadata_rows(self.log.open())
        self._known = (now, found)
        return dict(found)

    def metadata_rows(self, state: LogState) -> dict[str, str]:
        """The newest value of each, as the table says."""
        found: dict[str, str | None] = {}
        for row in self.rows_in(METADATA, state).sort_by("timestamp").to_pylist():
            if row["key"] is not None:
                found[row["key"]] = row["value"]
        return {key: value for key, value in found.items() if value is not None}

    def setting(self, key: str) -> Any:
        """One setting, or its default."""
        return typed(key, self._settings())

    def text(self, key: str) -> str | None:
        """One setting as it is stored, if it is."""
        return self._settings().get(key)

    def _settings(self) -> dict[str, str]:
        """Settings, or none where the table can't be read: that is told, and stops nobody."""
        try:
            return self.metadata()
        except (MillpondError, OSError, pa.ArrowException) as error:
            _log.warning("settings of the pond can't be read, defaults are taken: %s", error)
            self._known = (self._clock.monotonic(), {})
            return {}

    def set(self, values: Mapping[str, object]) -> None:
        """Change settings; None takes one back to its default."""
        self.note({k: None if v is None else checked(k, v) for k, v in values.items()})

    def note(self, values: Mapping[str, str | None]) -> None:
        """Write identity or settings as they are."""
        self.append(
            [
                Record(record_category=METADATA, record_type="set", key=key, value=value)
                for key, value in values.items()
            ]
        )
        self.keep_settings()

    def keep_settings(self) -> None:
        """Write the file from which settings are read, as the table has them now."""
        state = self.log.open()
        self.file.write(state.version, self.metadata_rows(state))
        self._known = None


def _files(rows: Sequence[Record]) -> list[NewFile]:
    """Records as one file for each category."""
    parts: dict[str, list[Record]] = {}
    for row in rows:
        parts.setdefault(row.record_category, []).append(row)
    return [NewFile({CATEGORY: p}, to_parquet(r), len(r)) for p, r in parts.items()]


def _still_open(opened: Mapping[str, Sequence[Record]], rows: pa.Table) -> list[pa.Table]:
    """The records of transactions that are open, unless rows that were read later have them.

    To be asked in this order: one that ends meanwhile may be in both, but never in neither.
    """
    ids = rows.column("txn_id")
    over = set(ids.filter(pc.is_in(ids, pa.array(list(opened), pa.string()))).to_pylist())
    found = [r for txn_id, records in opened.items() if txn_id not in over for r in records]
    found.sort(key=lambda record: record.timestamp)
    return [from_parquet(to_parquet(found), TRANSACTION)] if found else []
