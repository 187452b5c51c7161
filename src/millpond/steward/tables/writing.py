"""Rows on their way into the tables of nodes; `write.py` is what users touch.

A step that is refused changes nothing: neither the drafts of the scope nor its pending tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from millpond.base.errors import ObjectNotFoundError, PathTypeError, SchemaError
from millpond.base.store import open_store
from millpond.fs import edit
from millpond.fs.entry import EntryType
from millpond.fs.resolve import try_resolve
from millpond.kernel.table import DeltaTable
from millpond.kernel.write.conflicts import key_of
from millpond.provider.times import time_column
from millpond.steward.tables.arrivals import arrival
from millpond.steward.tables.evolve import Reshaping, ready
from millpond.steward.tables.pending import PendingTable
from millpond.steward.temporal.times import added, event_times, spanning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.fs.entry import Row
    from millpond.fs.resolve import Located
    from millpond.plan.types import Struct
    from millpond.steward.tables.arrivals import Arrival
    from millpond.steward.write import WriteScope


@dataclass(frozen=True, slots=True)
class RowWriting:
    """One step: rows that are to be written to a path."""

    scope: WriteScope
    path: str
    kind: EntryType
    reshaping: Reshaping = field(default_factory=Reshaping)
    time_column: str | None = None

    def write(self, rows: Any) -> Located:
        """Write them; what is there is replaced, or, in a series, added to."""
        scope, path = self.scope, self.path
        scope.check_kind(path, self.kind)
        given = arrival(rows, path=path, engine_for=scope.pond.engine_for)
        found = try_resolve(scope.work, path)
        column = self._time_column(found.row if found else None, given.schema)
        if found is None:
            if self.reshaping:
                raise SchemaError(
                    f"{path} is new: it has no columns to rename or drop",
                    hint="leave out renamed and dropped",
                )
            return self._write_new(given, column)
        assert found.row is not None
        return self._write_more(found, found.row, given, column)

    def _write_new(self, given: Arrival, column: str | None) -> Located:
        scope = self.scope
        made = edit.write(scope.work, self.path, self.kind, time_column=column)
        assert made.row is not None
        node_id = made.row.node_id
        try:
            tables = scope.pond.tables
            pending = tables.create(node_id, given.schema, path=self.path, name=made.row.name)
            scope.pending[node_id] = pending
            return self._append(pending, given, column)
        except BaseException:
            edit.remove(scope.work, self.path)
            if node_id in scope.pending:
                scope.pending.pop(node_id).rollback()
            raise

    def _write_more(self, found: Located, row: Row, given: Arrival, column: str | None) -> Located:
        scope = self.scope
        versions = row.version, edit.next_version(scope.work, found).version
        with Step(scope, row, self.path) as pending:
            tx = ready(pending, given.schema, self.reshaping, versions=versions)
            if self.kind is EntryType.SERIES:
                return self._append(pending, given, column)
            tx.overwrite(given.data)
            return self._note(pending, [], column)

    def _append(self, pending: PendingTable, given: Arrival, column: str | None) -> Located:
        tx = pending.transaction()
        before = set(tx.pending.adds)
        tx.append(given.data)
        new = [dict(add) for key, add in tx.pending.adds.items() if key not in before]
        return self._note(pending, new, column)

    def _note(
        self, pending: PendingTable, adds: list[dict[str, Any]], column: str | None
    ) -> Located:
        """The row of a node whose table was written."""
        work = self.scope.work
        fields: dict[str, Any] = {"size": sum(add["size"] for add in pending.adds)}
        if column is not None:
            found = self.scope.locate(self.path)
            times = event_times(_shaped(pending), adds, column)
            if found.row is not None and edit.next_version(work, found) == found.row:
                # This transaction has written to it before: both together are its version.
                times = spanning(times, (found.row.min_event_time, found.row.max_event_time))
            first, last = times
            fields |= {"min_event_time": first, "max_event_time": last, "time_column": column}
        return edit.write(work, self.path, self.kind, **fields)

    def _time_column(self, row: Row | None, schema: Struct) -> str | None:
        if self.kind is not EntryType.SERIES:
            return None
        known = row.time_column if row else None
        if known is not None:
            if known in self.reshaping.dropped:
                raise SchemaError(
                    f"{self.path}: {known!r} is the time of the series and can't be dropped",
                    hint="rename it, or make another series",
                )
            known = self.reshaping.renamed.get(known, known)
        if known is not None and self.time_column not in (None, known):
            raise PathTypeError(
                f"the time of {self.path} is in {known!r}, not in {self.time_column!r}",
                path=self.path,
                hint=f"leave out time_column, or rename the column: {known!r} is kept otherwise",
            )
        return time_column(schema, self.time_column or known, path=self.path)


@dataclass(slots=True)
class Step:
    """A change of a table that is there. If it is refused, it leaves no trace."""

    scope: WriteScope
    row: Row
    path: str
    _known: PendingTable | None = None

    def __enter__(self) -> PendingTable:
        found = self._known = self.scope.pending.get(self.row.node_id)
        if found is None:
            table = self.scope.pond.tables.open(self.row)
            found = PendingTable(table, self.path, is_new=False)
            self.scope.pending[self.row.node_id] = found
        return found

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        pending = self.scope.pending[self.row.node_id]
        if self._known is None:
            self.scope.pending.pop(self.row.node_id).rollback()
        elif pending.tx is not None and not pending.tx.pending.has_files:
            # It may have other columns by now, for rows that do not come.
            tx, pending.tx = pending.tx, None
            tx.rollback()


def append_to(table: DeltaTable, pending: PendingTable, versions: tuple[int, int]) -> PendingTable:
    """Append the rows of a new table to another one, and stage that.

    `versions` are those of the node, before and after these rows are written.
    """
    rows = pending.stage()
    joined = PendingTable(table, pending.path, is_new=False)
    try:
        ready(joined, rows.schema, Reshaping(), versions=versions)
        plan = rows.scan().oldest_first().plan()
        with plan.execute(engine=rows.engine("auto")) as batches:
            joined.transaction().append(iter(batches))
        joined.stage()
    except BaseException:
        joined.rollback()
        raise
    return joined


def restore_rows(scope: WriteScope, path: str, old: Row, *, whole: bool) -> Located:
    """Make the files of an older version live again, with the columns of then; copy nothing.

    Of a series these are the files that the version brought, or the `whole` series as of then.
    """
    found = scope.locate(path)
    assert found.row is not None
    table = scope.table_of(old)
    brought = None if whole else added(scope, f"{path}@v{old.version}", old)
    wanted = {key: add for key, add in _live(table).items()
              if brought is None or add["path"] in brought}  # fmt: skip
    with Step(scope, found.row, path) as pending:
        _check_there(table, wanted, f"{path}@v{old.version}")
        now = pending.stage()
        live = _live(now)
        tx = pending.transaction()
        tx.view = replace(tx.base, metadata=table.metadata)
        gone = [add["path"] for key, add in live.items() if key not in wanted]
        if gone:
            tx.remove_files(gone)
        tx.add_files([add for key, add in wanted.items() if key not in live])
        fields: dict[str, Any] = {"size": sum(add["size"] for add in wanted.values())}
        if old.time_column is not None:
            first, last = event_times(_shaped(pending), list(wanted.values()), old.time_column)
            fields |= {"min_event_time": first, "max_event_time": last}
            fields["time_column"] = old.time_column
        return scope.replaced(path, old.entry_type, **fields)


def _shaped(pending: PendingTable) -> DeltaTable:
    """The table with the columns that it will have."""
    return DeltaTable(pending.transaction().view, pending.table.settings)


def _live(table: DeltaTable) -> dict[Any, dict[str, Any]]:
    rows = table.files().to_arrow().to_pylist(maps_as_pydicts="lossy")
    return {
        key_of(row): {name: value for name, value in row.items() if value is not None}
        for row in rows
    }


def _check_there(table: DeltaTable, files: Mapping[Any, dict[str, Any]], what: str) -> None:
    """Maintenance may have removed what nobody was to need any more."""
    from urllib.parse import unquote

    store = open_store(table.location, settings=table.settings)
    for add in files.values():
        try:
            store.head(unquote(add["path"]))
        except ObjectNotFoundError as error:
            raise PathTypeError(
                f"{what} can't be restored: its file {add['path']} is not kept any more",
                path=what,
                hint="restore a later version, or the file from a backup",
            ) from error
