"""`WriteScope`: one transaction. What it does is seen by nobody else before `commit()`."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

from millpond.base.errors import (
    PathError,
    PathExistsError,
    PathSyntaxError,
    PathTypeError,
    PlanError,
    ScopeError,
)
from millpond.base.ids import TxnId
from millpond.fs import edit
from millpond.fs.edit import Stored
from millpond.fs.entry import BEGINS_WITH, REARRANGED, EntryType
from millpond.fs.factory import config_text, kind_of
from millpond.fs.paths import split_version
from millpond.fs.resolve import try_resolve
from millpond.fs.working import Working
from millpond.steward.committing.commit import Committed, Committing
from millpond.steward.committing.steps import step
from millpond.steward.control.process import OPEN
from millpond.steward.keeping import alive
from millpond.steward.read import ReadScope
from millpond.steward.scope import Scope
from millpond.steward.tables.evolve import Reshaping
from millpond.steward.tables.pending import PendingTable
from millpond.steward.tables.writing import RowWriting, restore_rows

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from types import EllipsisType, TracebackType

    from millpond.fs.entry import Row
    from millpond.fs.resolve import Located
    from millpond.fs.tree import Tree
    from millpond.kernel.table import DeltaTable
    from millpond.steward.pond import Pond
    from millpond.steward.temporal.bounds import Bounds

CHANGEABLE: Final = ("config", "extended_attributes", "factory", "max_override", "min_override")
RESERVED: Final = ("kind", "staged", "timestamp", "txn_id", "txn_seq")


class WriteScope(Scope):
    """A transaction: reads see its own writes; leaving it without `commit()` takes all back.

    >>> import millpond as mp
    >>> pond = mp.create("example")
    >>> with pond.write("names") as tx:
    ...     _ = tx.make_directory("/a/b", parents=True)
    ...     _ = tx.write_bytes("/a/b/note", b"hello")
    ...     _ = tx.make_link("/latest", "a/b/note")
    ...     _ = tx.move("/a/b", "/c")
    ...     tx.remove("/a")
    ...     tx["/c/note"].read_bytes(), tx.exists("/latest")
    ...     _ = tx.commit()
    (b'hello', False)
    """

    def __init__(self, pond: Pond, tree: Tree, info: Mapping[str, Any], *, kind: str) -> None:
        self.pond = pond
        self.work = Working(tree)
        self.tree = self.work
        self.txn_id = str(TxnId.new())
        self.pending: dict[str, PendingTable] = {}
        self.result: Committed | None = None
        self.is_over = False
        self._spoiled: BaseException | None = None
        self._owner = owner()
        self._committing = Committing(self, _checked(info), kind=kind)
        alive.note(self)

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

    def base(self) -> ReadScope:
        """Return the pond without the changes of this transaction, as it found it.

        What is computed from it is cached, and is what the transaction is based on.
        """
        self.check()
        return ReadScope(self.pond, self.work.base)

    # The end

    def commit(self) -> Committed:
        """Make everything visible at once; with nothing to commit, nothing happens."""
        self.check()
        if self._spoiled is not None:
            self.rollback(self._spoiled)
            raise ScopeError(
                f"a step of this transaction failed, so that nothing of it was kept: "
                f"{self._spoiled}",
                hint="begin another one: pond.write()",
            ) from self._spoiled
        try:
            return self._committing.run()
        finally:
            self._leave()

    def rollback(self, error: BaseException | None = None) -> None:
        """Take everything back."""
        if self.is_over:
            return
        try:
            self._committing.take_back(error)
        finally:
            self._leave()

    def _leave(self) -> None:
        self.is_over = True
        self.pond.leave(self)
        OPEN.pop(self.txn_id, None)

    # Names

    def make_directory(
        self, path: str, *, parents: bool = False, exist_ok: bool = False
    ) -> Located:
        """Make a directory; `parents` makes those above it, too."""
        with self._step():
            return edit.make_directory(self.work, path, parents=parents, exist_ok=exist_ok)

    def make_link(self, path: str, target: str) -> Located:
        """Make a symbolic link."""
        with self._step():
            return edit.make_link(self.work, path, target)

    def make_factory(
        self,
        path: str,
        factory: str,
        config: Mapping[str, Any] | None = None,
    ) -> Located:
        """A node that is computed by a factory, or run; its configuration is checked first."""
        self.check()
        entry_type = kind_of(factory)
        text = config_text(factory, config or {})
        with self._step():
            return edit.write(self.work, path, entry_type, factory=factory, config=text)

    def move(self, source: str, target: str) -> Located:
        """Give a node another name or another directory."""
        with self._step():
            return edit.move(self.work, source, target)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a node; it can be restored."""
        with self._step():
            edit.remove(self.work, path, recursive=recursive)

    def restore(self, path: str, *, as_of: int | datetime | None = None) -> Located:
        """Bring back what was removed at a path, or, with `@v3`, what it was at a version.

        That is a new version of it. A version of a series is what it brought, so a series is then
        that alone, as `@v3` is read; `as_of` brings back all of it as of a transaction or a time.

        >>> import millpond as mp
        >>> pond = mp.create("example")
        >>> for step in (lambda tx: tx.write_bytes("/a", b"1"), lambda tx: tx.remove("/a"),
        ...              lambda tx: tx.restore("/a")):
        ...     with pond.write() as tx:
        ...         _ = step(tx)
        ...         _ = tx.commit()
        >>> pond["/a"].read_bytes()
        b'1'
        """
        with self._step():
            plain, version = split_version(path)
            if version is not None and as_of is not None:
                raise PathSyntaxError(
                    f"{path} names a version, and as_of another one",
                    path=path,
                    hint=f"restore {path}, or {plain} as of a transaction",
                )
            if version is None and as_of is None:
                return edit.restore_removed(self.work, plain)
            then = None if as_of is None else self.pond.read(as_of=as_of).row(plain)
            if try_resolve(self.work, plain) is None:
                edit.restore_removed(self.work, plain)
            if then is None:
                return self._restore_version(plain, self.row(path))
            if then.node_id != self.row(plain).node_id:
                raise PathExistsError(
                    f"another node was at {plain} then than is there now",
                    path=plain,
                    hint="move what is there, restore what was removed, then restore it as of then",
                )
            return self._restore_version(plain, then, whole=True)

    def _restore_version(self, path: str, old: Row, *, whole: bool = False) -> Located:
        if old.entry_type.is_table:
            return restore_rows(self, path, old, whole=whole)
        if not old.entry_type.is_bytes:
            raise PathTypeError(
                f"{path} is a {old.entry_type} and has no versions to restore",
                path=path,
                hint="restore what is in it, path by path"
                if old.entry_type.is_directory
                else "only files, tables and series have",
            )
        name = f"{path}@v{old.version}"
        rows = self.byte_rows(path, version=old.version) if whole else self.byte_rows(name)
        if len(rows) > 1:
            stored = self.pond.blobs.keep(self.chunks_of(rows, path))
        else:
            content = self.work.content(rows[0])
            stored = Stored(rows[0].size or 0, rows[0].blake3 or "", content)
        return self.replaced(path, old.entry_type, stored)

    def replaced(
        self, path: str, kind: EntryType, stored: Stored | None = None, **fields: Any
    ) -> Located:
        """A version that counts without those before it, also where versions are appended."""
        found = edit.write(self.work, path, kind, stored, **fields)
        row = found.row
        assert row is not None
        if kind.is_appended:
            row = row.with_attributes(**{BEGINS_WITH: row.version})
        # It is in the way of who appended meanwhile.
        self.work.put(row, parents=found.parents, path=path, is_append=False)
        return replace(found, chain=(*found.parents, row))

    def change(self, path: str, **fields: Any) -> Located:
        """Other facts about a node, which make no version: `min_override`, `config`, ..."""
        with self._step():
            unknown = sorted(set(fields) - set(CHANGEABLE))
            if unknown:
                raise PathTypeError(
                    f"{unknown[0]!r} of {path} can't be changed",
                    path=path,
                    hint=f"what can: {', '.join(CHANGEABLE)}",
                )
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
        """A new version of a file. With `series`, all versions together are its bytes.

        >>> import millpond as mp
        >>> pond = mp.create("example")
        >>> for line in (b"up\\n", b"down\\n"):
        ...     with pond.write() as tx:
        ...         _ = tx.write_bytes("/log", line, series=True)
        ...         _ = tx.commit()
        >>> pond["/log"].read_bytes(), pond["/log@v2"].read_bytes()
        (b'up\\ndown\\n', b'down\\n')
        """
        with self._step():
            kind = EntryType.DATA_SERIES if series else EntryType.DATA
            self.check_kind(path, kind)
            return self._written(path, kind, self.pond.blobs.keep(data), attributes)

    def write_file(
        self,
        path: str,
        file: str | os.PathLike[str],
        *,
        series: bool = False,
        watch: Callable[[int], None] | None = None,
    ) -> Located:
        """A new version of a file, with the bytes of a file of this machine.

        `watch` is told how many bytes were read; a large file is read twice.
        """
        with self._step():
            kind = EntryType.DATA_SERIES if series else EntryType.DATA
            self.check_kind(path, kind)
            return self._written(path, kind, self.pond.blobs.keep_file(file, watch=watch), None)

    def write_same(self, path: str, row: Row) -> Located:
        """A new version of a file with the bytes of a row of the pond: nothing is copied."""
        with self._step():
            self.check_kind(path, EntryType.DATA)
            stored = Stored(row.size or 0, row.blake3 or "", self.work.content(row))
            return self._written(path, EntryType.DATA, stored, None)

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
        if found is None or row is None or edit.next_version(self.work, found) != row:
            return stored
        more = replace(row, size=stored.size, blake3=stored.blake3, content=stored.content)
        return self.pond.blobs.keep(self.chunks_of([row, more], path))

    # Rows

    def write_table(
        self,
        path: str,
        rows: Any,
        *,
        renamed: Mapping[str, str] | None = None,
        dropped: Sequence[str] = (),
    ) -> Located:
        """A new version of a table: these rows instead of those before.

        New columns are added, types become wider where nothing is lost, and columns that the rows
        lack are null. `renamed` gives columns other names, `dropped` takes some away. What does not
        fit is an error that names both types.

        >>> import millpond as mp
        >>> pond = mp.create("example")
        >>> for rows in ([{"a": 1}], [{"a": 2, "b": "new"}]):
        ...     with pond.write() as tx:
        ...         _ = tx.write_table("/t", rows)
        ...         _ = tx.commit()
        >>> pond["/t"].to_arrow().to_pylist(), pond["/t@v1"].to_arrow().to_pylist()
        ([{'a': 2, 'b': 'new'}], [{'a': 1}])
        """
        reshaping = Reshaping(renamed or {}, dropped)
        with self._step():
            return RowWriting(self, path, EntryType.TABLE, reshaping).write(rows)

    def append_series(
        self,
        path: str,
        rows: Any,
        *,
        time_column: str | None = None,
        renamed: Mapping[str, str] | None = None,
        dropped: Sequence[str] = (),
    ) -> Located:
        """Add rows to a series, or make one; its time column is declared, or found by its name.

        Columns change as in `write_table`; those that are dropped are gone from older rows, too.

        >>> import millpond as mp
        >>> from datetime import UTC, datetime
        >>> pond = mp.create("example")
        >>> with pond.write() as tx:
        ...     _ = tx.append_series("/rain", [{"time": datetime(2024, 5, 1, tzinfo=UTC), "mm": 3}])
        ...     _ = tx.commit()
        >>> pond["/rain"].stat().min_event_time.isoformat()
        '2024-05-01T00:00:00+00:00'
        """
        reshaping = Reshaping(renamed or {}, dropped)
        with self._step():
            return RowWriting(self, path, EntryType.SERIES, reshaping, time_column).write(rows)

    def set_bounds(
        self,
        *paths: str,
        first: datetime | EllipsisType | None = ...,
        last: datetime | EllipsisType | None = ...,
    ) -> list[Bounds]:
        """Say from when to when the rows of series count, both ends included.

        None opens an end, and an end that is not given stays as it is.

        Bounds hold for old versions and for what is appended later, in every way to read.
        """
        from millpond.steward.temporal.bounds import set_bounds

        return set_bounds(self, paths, first=first, last=last)

    def rearrange(self, path: str, runs: Iterable[Iterable[str]]) -> int:
        """Write each run of files of a node's table as one, or few; how many that makes.

        Rows stay what they are, and so does the version of the node.
        """
        with self._step():
            row = self.row(path)
            pending = self.pending.setdefault(
                row.node_id, PendingTable(self.pond.tables.open(row), path, is_new=False)
            )
            made = sum(pending.transaction().rearrange(run) for run in runs)
            told = row.with_attributes(**{REARRANGED: [row.version, row.written]})
            edit.change(self.work, path, extended_attributes=told.extended_attributes)
            return made

    def table_of(self, row: Row) -> DeltaTable:
        """The Delta table of a row, with what this transaction has written."""
        pending = self._pending_of(row)
        return super().table_of(row) if pending is None else pending.stage()

    def added_files(self, row: Row) -> set[str]:
        """The files that a version of a series has brought."""
        pending = self._pending_of(row)
        if pending is None:
            return super().added_files(row)
        return {add["path"] for add in pending.adds}

    def _pending_of(self, row: Row) -> PendingTable | None:
        """What this transaction has written to a node, if a row is about that."""
        pending = self.pending.get(row.node_id)
        latest = self.work.latest(row.part_id, row.node_id)
        return pending if latest is not None and latest.version == row.version else None

    # What all of them need

    @contextmanager
    def _step(self) -> Iterator[None]:
        """One change. If it is refused, nothing has changed; if it fails, all is lost."""
        self.check()
        try:
            self._committing.begin()
            with step("write"):
                yield
            self.forget_derived()
        except (PathError, PlanError):
            raise
        except BaseException as error:
            self._spoiled = self._spoiled or error
            raise

    def check_kind(self, path: str, kind: EntryType) -> None:
        """Before anything is put: what is there stays what it is."""
        found = try_resolve(self.work, path)
        if found is None:
            # The directory has to be there, and the name has to be free.
            edit.check_place(self.work, path)
        elif found.entry_type is not kind:
            edit.refuse_other(path, found.entry_type, kind)


def owner() -> tuple[threading.Thread, asyncio.Task[Any] | None]:
    """Who is running: the thread, and the task in it."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.current_thread(), task


def _checked(info: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a transaction stands beside what the pond says of it."""
    for name in info:
        if name in RESERVED:
            raise ScopeError(
                f"{name!r} is what the pond itself notes of a transaction",
                hint="choose another name",
            )
    return dict(info)
