"""`delta_table(location)`: a Delta table in the hand, at one version.

Opening lists the log and reads protocol and metadata; nothing else is read before it is asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from millpond.base.clock import SystemClock
from millpond.base.errors import PlanError
from millpond.kernel.engines import log_engine, row_engine
from millpond.kernel.machine import Consume, StateMachine
from millpond.kernel.open import SnapshotBuilder, UpdateLog, Wanted, checked_tail
from millpond.kernel.scan import FILE_COLUMNS, Scan, ScanBuilder, incremental_machine
from millpond.kernel.settings import ListCommits, ReadSettings, TableSettings
from millpond.plan.arguments import whole_of

if TYPE_CHECKING:
    import datetime as dt
    import os
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from millpond.base.settings import Settings
    from millpond.kernel.actions import AppTransaction, DomainMetadata, Metadata, Protocol
    from millpond.kernel.changes import TableChanges
    from millpond.kernel.data import TableScan
    from millpond.kernel.segment import LogFile
    from millpond.kernel.snapshot import Snapshot
    from millpond.kernel.write.transaction import Transaction
    from millpond.plan.executor import Executor
    from millpond.plan.expr import Expr
    from millpond.plan.types import Struct

_KEPT_BYTES: Final = 64 << 20
"""The live files of all tables of this process that are kept take no more memory than this."""
_OWN: Final = ("auto", "arrow")
"""Engines that a table makes for itself."""


def delta_table(
    location: str | os.PathLike[str],
    version: int | None = None,
    timestamp: dt.datetime | str | int | None = None,
    *,
    engine: str | Executor = "auto",
    settings: Settings | None = None,
) -> DeltaTable:
    """Open a Delta table: the latest version, a given one, or the one of a moment.

    The table keeps `settings` for all that is done with it: how an object store is reached, say.
    Without them, engines and stores go by the environment.
    """
    if version is not None and timestamp is not None:
        raise PlanError("give a version or a timestamp, not both")
    builder = SnapshotBuilder(location)
    if version is not None:
        builder = builder.at_version(version)
    if timestamp is not None:
        builder = builder.at_timestamp(timestamp)
    reader = log_engine(engine, settings)
    return DeltaTable(builder.build(reader), settings, reader if engine in _OWN else None)


class DeltaTable:
    """One version of a table."""

    def __init__(
        self,
        snapshot: Snapshot,
        settings: Settings | None = None,
        reader: str | Executor | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.settings = settings
        self._reader = reader
        """This table's own engine for its log, which has read it so far."""

    def __repr__(self) -> str:
        return f"DeltaTable({self.location!r}, version={self.version})"

    @property
    def location(self) -> str:
        """Where the table is."""
        return self.snapshot.table

    @property
    def version(self) -> int:
        """The version."""
        return self.snapshot.version

    @property
    def schema(self) -> Struct:
        """The columns, without what Delta notes beside them."""
        return self.snapshot.plain_schema

    @property
    def metadata(self) -> Metadata:
        """Id, name, properties and the rest of the table's own description."""
        return self.snapshot.metadata

    @property
    def protocol(self) -> Protocol:
        """What readers and writers have to know."""
        return self.snapshot.protocol

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns, in order."""
        return self.snapshot.partition_columns

    def engine(self, engine: str | Executor) -> str | Executor:
        """The engine for this table's rows."""
        return row_engine(engine, self.settings)

    def log_engine(self, engine: str | Executor) -> str | Executor:
        """The engine for this table's log."""
        return log_engine(engine, self.settings)

    def files_engine(self, engine: str | Executor) -> str | Executor:
        """The same for its files: what was read when the table was opened is not read again."""
        if self._reader is not None and engine in _OWN:
            return self._reader
        return self.log_engine(engine)

    @cached_property
    def _table_settings(self) -> TableSettings:
        now = int(SystemClock().now().timestamp() * 1000)
        phase = Consume(ReadSettings(self.location, self.snapshot, now))
        machine: StateMachine[TableSettings] = StateMachine(
            phase, self.log_engine("auto"), table=self.location
        )
        return machine.run_to_terminal()

    @property
    def app_transactions(self) -> dict[str, AppTransaction]:
        """How far each application has written, by its id."""
        return self._table_settings.app_transactions

    @property
    def domain_metadata(self) -> dict[str, DomainMetadata]:
        """The table's domains, by name."""
        return self._table_settings.domain_metadata

    def history(
        self, limit: int | None = None, *, engine: str | Executor = "auto"
    ) -> list[dict[str, Any]]:
        """What commits say of themselves, newest first; times are milliseconds."""
        if limit is not None and whole_of(limit, "history()") < 0:
            raise PlanError(f"a limit is not negative: {limit}")
        start = Consume(ListCommits(self.location, self.snapshot, limit))
        machine: StateMachine[list[dict[str, Any]]] = StateMachine(
            start, self.log_engine(engine), table=self.location
        )
        return machine.run_to_terminal()

    def files(
        self,
        predicate: Expr | None = None,
        *,
        columns: Sequence[str] = FILE_COLUMNS,
        engine: str | Executor = "auto",
    ) -> LiveFiles:
        """The live files, without those that a predicate rules out."""
        builder = ScanBuilder(self.snapshot).with_columns(*columns).with_predicate(predicate)
        kept_by = self if predicate is None and engine in _OWN else None
        return LiveFiles(builder.build(), self.files_engine(engine), kept_by)

    def kept_files(self, columns: Sequence[str]) -> pa.Table | None:
        """Return these columns of the live files, if they were listed before and are few."""
        kept = _LISTED.get(self)
        if kept is None or not set(columns) <= set(kept.column_names):
            return None
        return kept.select(list(columns))

    def keep_files(self, files: pa.Table) -> None:
        """Remember the live files for the next call."""
        _LISTED.keep(self, files)

    def scan(
        self, columns: Sequence[str] | None = None, predicate: Expr | None = None
    ) -> TableScan:
        """The rows: some columns, those that satisfy a predicate."""
        from millpond.kernel.data import TableScan

        return TableScan(self, columns, predicate)

    def changes(self, start: int, end: int | None = None) -> TableChanges:
        """The change data feed of the versions from `start` to `end`, both included."""
        from millpond.kernel.changes import TableChanges

        return TableChanges(self, start, end)

    def files_since(
        self,
        version: int,
        *,
        columns: Sequence[str] = FILE_COLUMNS,
        engine: str | Executor = "auto",
    ) -> StateMachine[Scan]:
        """Which files were added and removed after a version: a machine whose rows tell.

        Only the commits in between are read, so a caller that has the files of that version knows
        those of this one.
        """
        scan = ScanBuilder(self.snapshot).with_columns(*columns).build()
        return incremental_machine(scan, version, self.log_engine(engine))

    def transaction(self, **how: Any) -> Transaction:
        """Begin a transaction on this version; see `Transaction`."""
        from millpond.kernel.write.transaction import Transaction

        return Transaction(self, **how)

    def update(
        self, *, log_tail: Sequence[LogFile] | None = None, engine: str | Executor = "auto"
    ) -> DeltaTable:
        """Return the newest version; only what is new is read. This object stays as it is.

        `log_tail` is the answer of the catalog that manages the table, as in `SnapshotBuilder`:
        its ratified commits that are not published; none if all are.
        """
        tail = None if log_tail is None else checked_tail(log_tail, self.location)
        start = Consume(UpdateLog(self.location, self.snapshot, Wanted(log_tail=tail)))
        machine: StateMachine[Snapshot] = StateMachine(
            start, self.files_engine(engine), table=self.location
        )
        found = machine.run_to_terminal()
        if found.metadata.id != self.metadata.id:
            # Another table in its place: what the reader has kept of this one's log is not that's.
            builder = SnapshotBuilder(self.location)
            builder = builder if log_tail is None else builder.with_log_tail(log_tail)
            reader = self.log_engine(engine)
            return DeltaTable(builder.build(reader), self.settings, reader)
        return self if found is self.snapshot else DeltaTable(found, self.settings, self._reader)


class _Listed:
    """Live files of tables, as they were listed; those that were used last are kept.

    A version of a table never changes, so they stay true as long as the table is there.
    """

    def __init__(self) -> None:
        self._lock = RLock()  # a table may be collected while another one is kept
        self._files: OrderedDict[ref[DeltaTable], pa.Table] = OrderedDict()
        self._bytes = 0

    def get(self, table: DeltaTable) -> pa.Table | None:
        """Return what was kept of a table."""
        with self._lock:
            found = self._files.get(ref(table))
            if found is not None:
                self._files.move_to_end(ref(table))
            return found

    def keep(self, table: DeltaTable, files: pa.Table) -> None:
        """Keep the files of a table, and forget others for it."""
        with self._lock:
            self._forget(ref(table))
            self._files[ref(table, self._forget)] = files
            self._bytes += files.nbytes
            while self._bytes > _KEPT_BYTES:
                self._forget(next(iter(self._files)))

    def _forget(self, table: ref[DeltaTable]) -> None:
        with self._lock:
            files = self._files.pop(table, None)
            self._bytes -= 0 if files is None else files.nbytes


_LISTED: Final = _Listed()


class LiveFiles:
    """Live files of a table: an Arrow table when it is used as one, or batches as they come."""

    def __init__(
        self, files: Scan, engine: str | Executor, kept_by: DeltaTable | None = None
    ) -> None:
        self._files = files
        self._engine = engine
        self._kept_by = kept_by
        """The table that keeps them for the next call, as far as they are few."""

    def __repr__(self) -> str:
        snapshot = self._files.snapshot
        return f"LiveFiles({snapshot.table!r}, version={snapshot.version})"

    def state_machine(self) -> StateMachine[Scan]:
        """The machine that finds them."""
        return self._files.machine(self._engine)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield batches as they come, and keep none; what was kept before is not read again."""
        kept = self._kept()
        return iter(self.state_machine() if kept is None else kept.to_batches())

    def _kept(self) -> pa.Table | None:
        return None if self._kept_by is None else self._kept_by.kept_files(self._files.columns)

    @cached_property
    def _table(self) -> pa.Table:
        import pyarrow as pa

        from millpond.plan.arrow import to_arrow_schema

        kept = self._kept()
        if kept is not None:
            return kept
        schema = to_arrow_schema(self._files.schema)
        found = pa.Table.from_batches(list(self.state_machine()), schema)
        if self._kept_by is not None:
            self._kept_by.keep_files(found)
        return found

    def to_arrow(self) -> pa.Table:
        """All of them."""
        return self._table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        return self._table.column(column)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._table, name)
