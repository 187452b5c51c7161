"""`WriteScope`: one transaction. What it does is seen by nobody else before `commit()`."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from millpond.base.errors import PathTypeError, ScopeError
from millpond.base.ids import TxnId
from millpond.fs import edit
from millpond.fs.edit import Stored
from millpond.fs.entry import EntryType
from millpond.fs.paths import split_version
from millpond.fs.resolve import try_resolve
from millpond.fs.working import Working
from millpond.steward.commit import Committed, Committing
from millpond.steward.scope import Scope
from millpond.steward.steps import step
from millpond.steward.tables import PendingTable, evolve
from millpond.steward.temporal import event_times, spanning, time_column_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from millpond.fs.entry import Row
    from millpond.fs.resolve import Located
    from millpond.fs.tree import Tree
    from millpond.kernel.table import DeltaTable
    from millpond.plan.types import Struct
    from millpond.steward.pond import Pond


class WriteScope(Scope):
    """A transaction: reads see its own writes; leaving it without `commit()` takes all back."""

    def __init__(self, pond: Pond, tree: Tree, info: Mapping[str, Any], *, kind: str) -> None:
        self.pond = pond
        self.work = Working(tree)
        self.tree = self.work
        self.txn_id = str(TxnId.new())
        self.pending: dict[str, PendingTable] = {}
        self.result: Committed | None = None
        self.is_over = False
        self._owner = owner()
        self._committing = Committing(self, dict(info), kind=kind)

    def __repr__(self) -> str:
        return f"WriteScope({self.pond.location!r}, txn_id={self.txn_id!r}, {len(self.work)} rows)"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.is_over:
            return
        has_work = bool(self.work.drafts)
        self.rollback(error)
        if error is None and has_work:
            raise ScopeError(
                "the transaction was left without commit(): everything in it was taken back",
                hint="call commit() at the end of the block, or rollback() to say that it is meant",
            )

    def check(self) -> None:
        """A transaction belongs to the thread and task that began it, and ends once."""
        if self.is_over:
            raise ScopeError("this transaction is over", hint="begin another one: pond.write()")
        if self._owner != owner():
            raise ScopeError(
                "this transaction belongs to another thread or task",
                hint="begin one of its own there: pond.write()",
            )

    # The end

    def commit(self) -> Committed:
        """Make everything visible at once; with nothing to commit, nothing happens."""
        self.check()
        try:
            self.result = self._committing.run()
        finally:
            self.is_over = True
            self.pond.leave(self)
        return self.result

    def rollback(self, error: BaseException | None = None) -> None:
        """Take everything back."""
        if self.is_over:
            return
        self.is_over = True
        self.pond.leave(self)
        self._committing.take_back(error)

    # Names

    def make_directory(
        self, path: str, *, parents: bool = False, exist_ok: bool = False
    ) -> Located:
        """Make a directory; `parents` makes those above it, too."""
        self._begin()
        return edit.make_directory(self.work, path, parents=parents, exist_ok=exist_ok)

    def make_link(self, path: str, target: str) -> Located:
        """Make a symbolic link."""
        self._begin()
        return edit.make_link(self.work, path, target)

    def move(self, source: str, target: str) -> Located:
        """Give a node another name or another directory."""
        self._begin()
        return edit.move(self.work, source, target)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a node; it can be restored."""
        self._begin()
        edit.remove(self.work, path, recursive=recursive)

    def restore(self, path: str) -> Located:
        """Bring back what was removed at a path, or, with `@v3`, what a version of it was."""
        self._begin()
        plain, version = split_version(path)
        if version is None:
            return edit.restore_removed(self.work, plain)
        if try_resolve(self.work, plain) is None:
            edit.restore_removed(self.work, plain)
        old = self.row(path)
        if old.entry_type.is_bytes or old.entry_type is EntryType.SYMLINK:
            content = self.work.content(old)
            stored = Stored(old.size or 0, old.blake3 or "", content)
            return edit.write(self.work, plain, old.entry_type, stored)
        if not old.entry_type.is_table:
            raise PathTypeError(
                f"{plain} is a {old.entry_type} and has no versions to restore", path=path
            )
        return self._restore_rows(plain, old)

    def change(self, path: str, **fields: Any) -> Located:
        """Other facts about a node: bounds, attributes."""
        self._begin()
        return edit.change(self.work, path, **fields)

    # Bytes

    def write_bytes(
        self,
        path: str,
        data: bytes | Iterable[bytes],
        *,
        series: bool = False,
        attributes: Mapping[str, Any] | None = None,
    ) -> Located:
        """A new version of a file. With `series`, all versions together are its bytes."""
        self._begin()
        kind = EntryType.DATA_SERIES if series else EntryType.DATA
        self._check_kind(path, kind)
        return self._written(path, kind, self.pond.blobs.keep(data), attributes)

    def write_file(
        self, path: str, file: str | os.PathLike[str], *, series: bool = False
    ) -> Located:
        """A new version of a file, with the bytes of a file of this machine."""
        self._begin()
        kind = EntryType.DATA_SERIES if series else EntryType.DATA
        self._check_kind(path, kind)
        return self._written(path, kind, self.pond.blobs.keep_file(file), None)

    def _written(
        self, path: str, kind: EntryType, stored: Stored, attributes: Mapping[str, Any] | None
    ) -> Located:
        if kind is EntryType.DATA_SERIES:
            stored = self._joined(path, stored)
        found = edit.write(self.work, path, kind, stored)
        if attributes:
            assert found.row is not None
            row = found.row.with_attributes(**attributes)
            self.work.put(row, parents=found.parents, path=path, is_append=kind.is_appended)
        return found

    def _joined(self, path: str, stored: Stored) -> Stored:
        """What one transaction appends to a series of bytes is one version."""
        found = try_resolve(self.work, path)
        row = found.row if found else None
        if row is None or (row.part_id, row.node_id) not in self.work.drafts:
            return stored
        base = self.work.base.latest(row.part_id, row.node_id)
        if base is not None and base.version == row.version:
            return stored
        before = b"".join(self.pond.blobs.read(row, self.work.content(row), path=path))
        more = Stored(stored.size, stored.blake3, stored.content)
        after = b"".join(
            self.pond.blobs.read(
                replace(row, size=more.size, blake3=more.blake3, content=more.content),
                more.content,
                path=path,
            )
        )
        return self.pond.blobs.keep(before + after)

    # Rows

    def write_table(
        self, path: str, rows: Any, *, renamed: Mapping[str, str] | None = None
    ) -> Located:
        """A new version of a table: these rows instead of those before.

        New columns are added, types become wider where nothing is lost, `renamed` gives columns
        other names; everything else that does not fit is an error with both types.
        """
        return self._write_rows(path, rows, EntryType.TABLE, renamed=renamed, time_column=None)

    def append_series(
        self,
        path: str,
        rows: Any,
        *,
        time_column: str | None = None,
        renamed: Mapping[str, str] | None = None,
    ) -> Located:
        """Add rows to a series, or make one; its time column is declared, or found by its name."""
        return self._write_rows(
            path, rows, EntryType.SERIES, renamed=renamed, time_column=time_column
        )

    def _write_rows(
        self,
        path: str,
        rows: Any,
        kind: EntryType,
        *,
        renamed: Mapping[str, str] | None,
        time_column: str | None,
    ) -> Located:
        from millpond.steward.arrivals import arrival

        self._begin()
        self._check_kind(path, kind)
        found = try_resolve(self.work, path)
        given = arrival(rows, path=path)
        column = None
        if kind is EntryType.SERIES:
            known = found.row.time_column if found and found.row else None
            if known is not None and time_column not in (None, known):
                raise PathTypeError(
                    f"the time of {path} is in {known!r}, not in {time_column!r}", path=path
                )
            column = time_column_of(given.schema, time_column or known, path=path)
        if found is None or found.row is None:
            made = edit.write(self.work, path, kind, time_column=column)
            assert made.row is not None
            pending = self._new_table(made.row, given.schema, path)
        else:
            pending = self._pending(found.row, path)
            made = found
        tx = pending.transaction()
        before = set(tx.pending.adds)
        assert made.row is not None
        if not tx.pending.has_files:
            evolve(tx, given.schema, path=path, version=made.row.version, renamed=renamed)
        if kind is EntryType.SERIES or found is None:
            tx.append(given.data)
        else:
            tx.overwrite(given.data)
        adds = [dict(add) for key, add in tx.pending.adds.items() if key not in before]
        return self._noted(path, kind, pending, adds, column)

    def _noted(
        self,
        path: str,
        kind: EntryType,
        pending: PendingTable,
        adds: list[dict[str, Any]],
        column: str | None,
    ) -> Located:
        """The row of a node whose table was written."""
        fields: dict[str, Any] = {"size": sum(add["size"] for add in pending.adds)}
        if column is not None:
            found = self.locate(path)
            times = event_times(pending.table, adds, column)
            if found.row is not None and edit.next_version(self.work, found) == found.row:
                # This transaction has written to it before: both together are its version.
                earlier = (found.row.min_event_time, found.row.max_event_time)
                times = spanning(times, earlier)
            first, last = times
            fields |= {"min_event_time": first, "max_event_time": last, "time_column": column}
        return edit.write(self.work, path, kind, **fields)

    def _restore_rows(self, path: str, old: Row) -> Located:
        """The files of an older version once more: nothing is copied."""
        found = self.locate(path)
        assert found.row is not None
        pending = self._pending(found.row, path)
        table = self.pond.tables.open(old)
        tx = pending.transaction()
        wanted = {add["path"]: add for add in table.files().to_arrow().to_pylist(
            maps_as_pydicts="lossy")}  # fmt: skip
        live = {add["path"]: add for add in pending.table.files().to_arrow().to_pylist(
            maps_as_pydicts="lossy")}  # fmt: skip
        gone = [name for name in live if name not in wanted]
        if gone:
            tx.remove_files(gone)
        tx.add_files([_plain(add) for name, add in wanted.items() if name not in live])
        fields: dict[str, Any] = {
            "size": old.size,
            "min_event_time": old.min_event_time,
            "max_event_time": old.max_event_time,
        }
        made = edit.write(self.work, path, old.entry_type, **fields)
        # It replaces what others may have appended meanwhile.
        key = (found.row.part_id, found.row.node_id)
        self.work.drafts[key] = replace(self.work.drafts[key], is_append=False)
        return made

    def table_of(self, row: Row) -> DeltaTable:
        """The Delta table of a row, with what this transaction has written."""
        pending = self.pending.get(row.node_id)
        latest = self.work.latest(row.part_id, row.node_id)
        if pending is None or latest is None or latest.version != row.version:
            return super().table_of(row)
        return pending.stage()

    def _new_table(self, row: Row, schema: Struct, path: str) -> PendingTable:
        made = self.pond.tables.create(row.node_id, schema, path=path, name=row.name)
        self.pending[row.node_id] = made
        return made

    def _pending(self, row: Row, path: str) -> PendingTable:
        found = self.pending.get(row.node_id)
        if found is None:
            table = self.pond.tables.open(row)
            found = self.pending[row.node_id] = PendingTable(table, path, is_new=False)
        return found

    # What all of them need

    def _begin(self) -> None:
        self.check()
        self._committing.begin()
        with step("write"):
            pass

    def _check_kind(self, path: str, kind: EntryType) -> None:
        """Before anything is put: what is there stays what it is."""
        found = try_resolve(self.work, path)
        if found is None:
            # The directory has to be there, and the name has to be free.
            edit.check_place(self.work, path)
        elif found.row is not None and found.entry_type is not kind:
            edit.refuse_other(path, found.entry_type, kind)


def owner() -> tuple[int, int | None]:
    """Who is running: the thread, and the task in it."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident(), None if task is None else id(task)


def _plain(add: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in add.items() if value is not None}
