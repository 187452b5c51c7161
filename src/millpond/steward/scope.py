"""What every scope can do: find nodes and read them. `read.py` and `write.py` are its two kinds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Unpack, overload

from millpond.base.errors import (
    DirectoryError,
    LinkLoopError,
    NoDirectoryError,
    PathNotFoundError,
    PathTypeError,
)
from millpond.fs.entry import EntryType, Row, from_micros
from millpond.fs.paths import split_version
from millpond.fs.resolve import Located, resolve, try_resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from millpond.fs.tree import TreeLike
    from millpond.kernel.table import DeltaTable
    from millpond.plan.node import Plan
    from millpond.plan.sources import Stored
    from millpond.provider.factory import Entry
    from millpond.steward.dynamic.derivation import Derivation
    from millpond.steward.dynamic.tree import DynamicTree
    from millpond.steward.handle import Handle
    from millpond.steward.pond import Pond
    from millpond.steward.temporal.overlaps import By, Overlaps
    from millpond.steward.temporal.times import Wanted

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stat:
    """What is known of a node without reading it."""

    path: str
    entry_type: EntryType
    version: int
    size: int | None
    modified: datetime | None
    node_id: str
    txn_seq: int
    blake3: str | None = None
    min_event_time: datetime | None = None
    max_event_time: datetime | None = None
    time_column: str | None = None
    factory: str | None = None
    target: str | None = None
    """Of a symbolic link."""

    @property
    def is_directory(self) -> bool:
        """Whether it has children."""
        return self.entry_type.is_directory


class Scope:
    """A pond at one version, in the hand."""

    pond: Pond
    tree: TreeLike

    @property
    def view(self) -> TreeLike:
        """The tree with what factories make in it."""
        return self.dynamic_tree

    @property
    def dynamic_tree(self) -> DynamicTree:
        """The same; it is made anew when the tree below it is another one."""
        from millpond.steward.dynamic.tree import DynamicTree

        known: DynamicTree | None = self.__dict__.get("_dynamic")
        if known is None or known.base is not self.tree:
            known = self.__dict__["_dynamic"] = DynamicTree(self.tree, self)
        return known

    @property
    def derivation(self) -> Derivation:
        """What factories compute in this scope."""
        from millpond.steward.dynamic.derivation import Derivation

        known: Derivation | None = self.__dict__.get("_derivation")
        if known is not None and known.variables is not self.pond.variables:
            self.forget_derived()
            known = None
        if known is None:
            known = self.__dict__["_derivation"] = Derivation(self)
        return known

    def entries(self, path: str, row: Row) -> Mapping[str, Entry]:
        """What is in a directory that a factory makes."""
        return self.derivation.entries(path, row)

    def forget_derived(self) -> None:
        """What was computed may not hold any more."""
        self.__dict__.pop("_dynamic", None)
        self.__dict__.pop("_derivation", None)

    def check(self) -> None:
        """Raise if the scope can't be used any more, or not here."""

    def __getitem__(self, path: str) -> Handle:
        from millpond.steward.handle import Handle

        return Handle(self, path)

    # Finding

    def locate(self, path: str, *, follow: bool = True) -> Located:
        """The node at a path, `@v3` taken off."""
        self.check()
        return resolve(self.view, split_version(path).path, follow=follow)

    def exists(self, path: str) -> bool:
        """Whether something is at a path, or at a version of it."""
        self.check()
        plain, version = split_version(path)
        try:
            found = try_resolve(self.view, plain)
        except (LinkLoopError, NoDirectoryError):  # as pathlib has it
            return False
        if found is None or version is None:
            return found is not None
        return any(row.version == version for row in self.versions(plain))

    def stat(self, path: str, *, follow: bool = True) -> Stat:
        """What is known of a node."""
        found = self.locate(path, follow=follow)
        row = self.row(path) if follow and found.chain else found.row
        return self.stat_of(found.path, row, whole=split_version(path).version is None)

    def stat_of(self, path: str, row: Row | None, *, whole: bool = False) -> Stat:
        """Return what a row says; the size is that of one version, or of the whole series."""
        if row is None:
            return Stat(path, EntryType.DIRECTORY, 1, None, None, "", 0)
        link = row.entry_type is EntryType.SYMLINK
        return Stat(
            path=path,
            entry_type=row.entry_type,
            version=row.version,
            size=row.whole_size if whole else row.size,
            modified=row.time if row.timestamp else None,
            node_id=row.node_id,
            txn_seq=row.txn_seq,
            blake3=row.blake3,
            min_event_time=as_time(row.min_event_time),
            max_event_time=as_time(row.max_event_time),
            time_column=row.time_column,
            factory=row.factory,
            target=(self.tree.content(row) or b"").decode() if link else None,
        )

    def children(self, path: str = "/") -> dict[str, Stat]:
        """What is in a directory, by name."""
        found = self.locate(path)
        if not found.entry_type.is_directory:
            raise PathTypeError(
                f"{path} is a {found.entry_type}, not a directory: nothing is in it",
                path=path,
                hint="iterate over a directory: pond['/'] is the topmost one",
            )
        base = "" if found.path == "/" else found.path
        rows = self.view.children(found.node_id)
        return {name: self.stat_of(f"{base}/{name}", row, whole=True) for name, row in rows.items()}

    def row(self, path: str) -> Row:
        """The row of a path's version: the latest, or the one that `@v3` names."""
        plain, version = split_version(path)
        found = self.locate(plain)
        if found.row is None:
            raise DirectoryError(f"{path} is the root directory", path=path, hint=LIST)
        if version is None:
            return found.row
        rows = self.versions(plain)
        for row in reversed(rows):
            if row.version == version:
                return row
        known = sorted({row.version for row in rows})
        shown = f"{known[0]} to {known[-1]}" if len(known) > 1 else f"{known[0]} alone"
        raise PathNotFoundError(
            f"{plain} has no version {version}", path=path, hint=f"it has {shown}"
        )

    def versions(self, path: str) -> list[Row]:
        """What was written to a node, oldest first: each version as it was written."""
        found = self.locate(path)
        if found.row is None:
            return []
        rows = self.view.history(found.row.part_id, found.row.node_id)
        last: dict[int, Row] = {}
        for row in rows:
            if not row.removed:
                last.setdefault(row.version, row)
        return [last[version] for version in sorted(last)]

    # Bytes

    def byte_rows(self, path: str, *, version: int | None = None) -> list[Row]:
        """The rows whose bytes, one behind the other, are those of a file, now or at a version.

        A path with `@v3` means what that one version brought.
        """
        row = self.row(path if version is None else f"{path}@v{version}")
        if row.entry_type.is_directory:
            raise DirectoryError(f"{path} is a directory", path=path, hint=LIST)
        if row.entry_type is EntryType.EXECUTABLE:
            raise runs_only(path)
        if not row.entry_type.is_bytes:
            raise PathTypeError(
                f"{path} is a {row.entry_type}: it has rows, not bytes",
                path=path,
                hint="read it as a table",
            )
        plain, single = split_version(path)
        if row.entry_type is not EntryType.DATA_SERIES or single is not None:
            return [row]
        first = row.begins_with
        return [each for each in self.versions(plain) if first <= each.version <= row.version]

    def read_chunks(self, path: str) -> Iterator[bytes]:
        """The bytes of a file in pieces, checked against their hash."""
        if self.row(path).entry_type is EntryType.DYNAMIC_FILE:
            return iter([self.derivation.content(path)])
        return self.chunks_of(self.byte_rows(path), path)

    def chunks_of(self, rows: list[Row], path: str) -> Iterator[bytes]:
        """The bytes of rows, one behind the other."""
        for row in rows:
            yield from self.pond.blobs.read(row, self.tree.content(row), path=path)

    def read_bytes(self, path: str) -> bytes:
        """The bytes of a file."""
        return b"".join(self.read_chunks(path))

    # Rows

    def delta(self, path: str) -> DeltaTable:
        """The Delta table behind a path, at the path's version."""
        row = self.row(path)
        if not row.entry_type.is_table:
            raise no_rows(path, row.entry_type)
        return self.table_of(row)

    def table_of(self, row: Row) -> DeltaTable:
        """The Delta table of a row."""
        return self.pond.tables.open(row)

    def added_files(self, row: Row) -> set[str]:
        """The files that a version of a series has brought."""
        return self.pond.tables.added_files(row)

    def plan(self, path: str, **wanted: Unpack[Wanted]) -> Plan:
        """The rows of a path as a plan; a series only within its bounds."""
        from millpond.steward.temporal.times import rows_of

        return rows_of(self, path, **wanted)

    def sql(self, text: str) -> Plan:
        """A query over paths as a plan: `SELECT … FROM "/sensors/a" JOIN "/sites@v3" …`.

        Paths, patterns, versions and URLs stand in double quotes or backticks. Spark is asked for
        the columns, and runs it.

        >>> import millpond as mp
        >>> pond = mp.create("example")
        >>> with pond.write() as tx:
        ...     _ = tx.write_table("/levels", [{"site": "Weir", "level": 2.9}])
        ...     _ = tx.commit()
        >>> pond.read().sql('SELECT max(level) FROM "/level"')
        Traceback (most recent call last):
        ...
        millpond.base.errors.PathNotFoundError: there is nothing at /level (line 1, column 24)
          SELECT max(level) FROM "/level"
                                 ^
          hint: did you mean /levels?
        """
        from millpond.steward.sql import sql_plan

        return sql_plan(text, lambda: self, settings=self.pond.settings)

    def detect_overlaps(self, *paths: str, by: By = "version") -> Overlaps:
        """The runs and overlaps of series, all taken together, by version or by path."""
        from millpond.steward.temporal.overlaps import detect_overlaps

        return detect_overlaps(self, paths, by=by)

    def resolve(self, stored: Stored) -> Plan:
        """What `stored(path, columns)` in a plan is here: those columns, in that order."""
        found = self.plan(stored.path)
        names = stored.schema.names
        # Where a column is missing, whoever asks compares both schemas, and says so.
        is_there = set(names) <= set(found.schema.names)
        return found.select(*names) if is_there and names != found.schema.names else found

    def to_arrow(self, path: str, **wanted: Unpack[Wanted]) -> pa.Table:
        """The rows of a path."""
        return self.reader(path, **wanted).read_all()

    def reader(self, path: str, **wanted: Unpack[Wanted]) -> pa.RecordBatchReader:
        """The rows of a path, as they come."""
        import pyarrow as pa

        plan = self.plan(path, **wanted)
        run = plan.execute(engine=self.pond.engine_for(plan))
        is_whole = not any(value is not None for value in wanted.values())
        return pa.RecordBatchReader.from_batches(
            run.schema, self.keeping(path, run) if is_whole else run
        )

    def keeping(self, path: str, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        """All rows of a path as they are read; those that took long to compute are kept."""
        from millpond.provider.url import is_url

        if is_url(path) or not self.row(path).entry_type.is_dynamic:
            return batches
        return self.derivation.keeping(path, batches)


LIST: Final = "list it, and read what is in it"


def no_rows(path: str, kind: EntryType) -> PathTypeError:
    """Return the error for a path that is read as a table and is not one."""
    if kind is EntryType.EXECUTABLE:
        return runs_only(path)
    plain = split_version(path).path
    hint = f"read its bytes, or name their format: csv://{plain}" if kind.is_bytes else LIST
    return PathTypeError(f"{path} is a {kind}: it has no rows", path=path, hint=hint)


def runs_only(path: str) -> PathTypeError:
    """Return the error for a node that is run and has nothing to read."""
    return PathTypeError(
        f"{path} is an executable: it has neither rows nor bytes",
        path=path,
        hint=f"run it: pond run {path}; pond describe {path} shows its configuration",
    )


@overload
def as_time(micros: int) -> datetime: ...
@overload
def as_time(micros: int | None) -> datetime | None: ...
def as_time(micros: int | None) -> datetime | None:
    """As far as Python can tell: it knows the years 1 to 9999."""
    if micros is None:
        return None
    try:
        return from_micros(micros)
    except OverflowError:
        return _FIRST if micros < 0 else _LAST
