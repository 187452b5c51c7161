"""The change data feed: which rows came and went, version by version.

    ListRange -> ReadRange -> the commits of the range

The actions of commits are partial results: the rows of a commit are read while later ones are not
yet. A commit that wrote change data tells its changes itself. For any other they follow from the
files it added and removed; where it only exchanged a deletion vector, from the difference of the
two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import groupby
from operator import itemgetter, or_
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import (
    CorruptLogError,
    DeltaError,
    MillpondError,
    PlanError,
    SourceError,
    VersionNotFoundError,
)
from millpond.kernel.actions import ADD, CDC, METADATA, REMOVE, Metadata, log_columns, picked
from millpond.kernel.data import (
    deleted_positions,
    missing_file,
    partition_arrays,
    positions_array,
)
from millpond.kernel.engines import is_arrow
from millpond.kernel.machine import (
    Consume,
    PartialResult,
    StateMachine,
    StateMachinePhase,
    Terminus,
)
from millpond.kernel.names import version_prefix
from millpond.kernel.open import SnapshotBuilder
from millpond.kernel.paths import resolve_all
from millpond.kernel.phase import (
    VERSION,
    BasePhase,
    check_sizes,
    lacking,
    list_log,
    listed_commits,
    together,
)
from millpond.kernel.times import commit_times, first_stated, has_stated_times
from millpond.kernel.widening import as_declared, scanned
from millpond.plan.arrow import to_arrow, to_arrow_schema
from millpond.plan.expr import col
from millpond.plan.sources import DynamicScan, File, Scan, Values
from millpond.plan.types import LONG, STRING, TIMESTAMP, Field, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millpond.kernel.roaring import Positions
    from millpond.kernel.segment import LogFile
    from millpond.kernel.snapshot import Snapshot
    from millpond.kernel.table import DeltaTable
    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan

CHANGE_TYPE: Final = Field("_change_type", STRING, nullable=False)
"""Never null, so that engines refuse a file of changes without it, or with a row without it."""
COMMIT_VERSION: Final = Field("_commit_version", LONG)
COMMIT_TIMESTAMP: Final = Field("_commit_timestamp", TIMESTAMP)
ADDED: Final = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
ENABLED: Final = "delta.enableChangeDataFeed"

_FILE: Final = ("path", "partitionValues", "size", "dataChange", "stats", "deletionVector")
ACTIONS: Final = log_columns(
    add=picked(ADD, *_FILE),
    remove=picked(REMOVE, *_FILE),
    cdc=picked(CDC, "path", "partitionValues", "size"),
    metaData=METADATA,
    commitInfo=Struct.of(inCommitTimestamp=LONG),
)

_MILLIS: Final = Field("millis", LONG)
_TIMES: Final = 4
_MOST_TOGETHER: Final = 4096
"""Files of changes that are read by one plan, or as many as one commit has."""
_LAST_MILLIS: Final = 253_402_300_799_999
"""The end of the year 9999."""


@dataclass(frozen=True)
class FileChange:
    """A file whose rows, or some of them, came or went with a version."""

    version: int
    millis: int
    kind: str | None
    """`insert` or `delete`; None where the file itself says so, row by row."""
    file: Mapping[str, Any]
    other: Mapping[str, Any] | None = None
    """The same file before (of an insert) or after (of a delete): only the difference counts."""


@dataclass(frozen=True)
class ListRange(BasePhase):
    """The commits of a range of versions."""

    snapshot: Snapshot
    start: int

    def plan(self) -> Plan:
        """The log from the first version on."""
        return list_log(self.log, version_prefix(self.start))

    def next(self, rows: pa.Table) -> StateMachinePhase[tuple[LogFile, ...]]:
        """Read them, if they are all there."""
        found = listed_commits(self.snapshot, rows)
        missing = lacking(found, self.start, self.snapshot.version)
        if missing is not None:
            later = missing[-1] + 1
            raise VersionNotFoundError(
                f"the log of {self.table} has no commit {missing[0]} any more",
                table=self.table,
                hint=f"changes can be read from version {later} on"
                if later in found
                else "only the table's rows can be read",
            )
        commits = tuple(found[v] for v in range(self.start, self.snapshot.version + 1))
        return PartialResult(ReadRange(self.table, self.snapshot, commits))


@dataclass(frozen=True)
class ReadRange(BasePhase):
    """What each commit did to files, oldest first, each commit read once: partial results."""

    snapshot: Snapshot
    commits: tuple[LogFile, ...]

    def plan(self) -> Plan:
        """The actions that matter, with the commit that they are of, and the time of its file."""
        times = commit_times(self.commits, {})
        check_sizes(self.commits)
        files = tuple(
            File(f.path, f.size, None, (f.name.version, times[f.name.version]))
            for f in self.commits
        )
        columns = Struct((*ACTIONS.fields, VERSION, _MILLIS))
        actions = Scan("json", files, columns, (VERSION.name, _MILLIS.name), strict=True)
        has = [col(name).is_not_null() for name in ACTIONS.names]
        return actions.filter(reduce(or_, has))

    def next(self) -> StateMachinePhase[tuple[LogFile, ...]]:
        """The commits of the range."""
        return Terminus(self.commits)


def changes_by_commit(
    snapshot: Snapshot, actions: Iterable[pa.RecordBatch]
) -> Iterator[list[FileChange]]:
    """Yield the changes of each commit as soon as the rows of `ReadRange` have passed it."""
    # What a commit states where it need not is not looked at, as when a version is opened.
    first = first_stated(snapshot) if has_stated_times(snapshot) else None
    last: int | None = None
    rows = (row for batch in actions for row in batch.to_pylist(maps_as_pydicts="lossy"))
    for (version, modified), group in groupby(rows, itemgetter(VERSION.name, _MILLIS.name)):
        found: dict[str, list[Any]] = {}
        for row in group:
            for name in ACTIONS.names:
                if row[name] is not None:
                    found.setdefault(name, []).append(row[name])
        millis = modified if last is None else max(modified, last + 1)
        for info in found.get("commitInfo", ()):
            if first is not None and version >= first and info["inCommitTimestamp"] is not None:
                millis = info["inCommitTimestamp"]
        last = millis
        _check_time(snapshot.table, version, millis)
        for metadata in found.get("metaData", ()):
            _check_enabled(snapshot.table, version, metadata)
        yield _of_commit(version, millis, found)


def _check_time(table: str, version: int, millis: int) -> None:
    if abs(millis) > _LAST_MILLIS:
        raise CorruptLogError(
            f"commit {version} of {table} states the time {millis} ms, which is in no calendar",
            table=table,
            hint="read the changes before it or after it",
        )


def _check_enabled(table: str, version: int, metadata: Mapping[str, Any]) -> None:
    try:
        found = Metadata.from_dict(metadata)
    except ValueError as error:
        raise CorruptLogError(
            f"the log of {table} is broken at version {version}: {error}",
            table=table,
            hint="read the changes before it or after it",
        ) from error
    if found.configuration.get(ENABLED, "").lower() != "true":
        raise no_feed(table, version)


def no_feed(table: str, version: int) -> DeltaError:
    """The change data feed was off."""
    return DeltaError(
        f"the change data feed of {table} was not on at version {version}",
        table=table,
        hint=f"set {ENABLED} to true, and read changes from there on",
    )


def _of_commit(version: int, millis: int, actions: Mapping[str, list[Any]]) -> list[FileChange]:
    if actions.get("cdc"):
        return [FileChange(version, millis, None, file) for file in actions["cdc"]]
    adds = {a["path"]: a for a in actions.get("add", ()) if a["dataChange"] is not False}
    removes = {r["path"]: r for r in actions.get("remove", ()) if r["dataChange"] is not False}
    changes = []
    for path, remove in removes.items():
        again = adds.get(path)
        changes.append(FileChange(version, millis, "delete", _known(remove, again), again))
    for path, add in adds.items():
        changes.append(FileChange(version, millis, "insert", add, removes.get(path)))
    return changes


def _known(remove: Mapping[str, Any], add: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A remove with what only the add of the same file tells."""
    if add is None:
        return remove
    filled = {
        n: remove[n] if remove[n] is not None else add[n] for n in ("partitionValues", "stats")
    }
    return {**remove, **filled}


class TableChanges:
    """The changed rows of a range of versions: the table's columns and three more."""

    def __init__(self, table: DeltaTable, start: int, end: int | None) -> None:
        last = table.version if end is None else end
        if type(start) is not int or type(last) is not int or start < 0:
            raise PlanError(f"changes from {start!r} to {end!r}: versions are whole numbers from 0")
        if last < start:
            raise PlanError(f"changes from {start} to {last}: the end is before the start")
        self.table = table
        self.start = start
        self.end = last

    def __repr__(self) -> str:
        return f"TableChanges({self.table!r}, {self.start} to {self.end})"

    @cached_property
    def _snapshot(self) -> Snapshot:
        """The table at the end of the range: its schema is that of all rows."""
        if self.end == self.table.version:
            return self.table.snapshot
        return self._at(self.end)

    def _at(self, version: int) -> Snapshot:
        builder = SnapshotBuilder(self.table.location).at_version(version)
        return builder.build(self.table.log_engine("auto"))

    @cached_property
    def schema(self) -> Struct:
        """The columns that come."""
        taken = [field.name for field in ADDED if field.name in self._snapshot.plain_schema]
        if taken:
            raise PlanError(f"the table has a column {taken[0]!r} of its own")
        return Struct((*self._snapshot.plain_schema.fields, *ADDED))

    def state_machine(self, engine: str | Executor = "auto") -> StateMachine[tuple[LogFile, ...]]:
        """The machine whose partial results are the actions of each commit, oldest first."""
        start = Consume(ListRange(self.table.location, self._snapshot, self.start))
        return StateMachine(start, self.table.log_engine(engine), table=self.table.location)

    def _check_start(self) -> None:
        found = self._at(self.start)
        if found.metadata.configuration.get(ENABLED, "").lower() != "true":
            raise no_feed(self.table.location, self.start)

    def plan(self, engine: str | Executor = "auto") -> Plan:
        """Return the changed rows as a plan; finding their files reads the log of the range."""
        changes = [c for commit in self._by_commit(engine) for c in commit]
        if not changes:
            from millpond.plan.make import values

            return values(to_arrow_schema(self.schema).empty_table())
        return self._plan_of(changes, engine)

    def _by_commit(self, engine: str | Executor) -> Iterator[list[FileChange]]:
        """Yield the files that changed, commit by commit."""
        self.schema  # noqa: B018 - it may be that there is none
        self._check_start()
        yield from changes_by_commit(self._snapshot, self.state_machine(engine))

    def _some(self, engine: str | Executor) -> Iterator[list[FileChange]]:
        """Yield the changes of whole commits: first of one, then of more and more together."""
        most = 1 if is_arrow(engine) else _MOST_TOGETHER
        held: list[FileChange] = []
        for changes in self._by_commit(engine):
            held += changes
            if len(held) >= most:
                yield held
                held, most = [], min(_TIMES * most, _MOST_TOGETHER)
        if held:
            yield held

    def _plan_of(self, changes: list[FileChange], engine: str | Executor) -> Plan:
        parts = []
        for told in (True, False):
            some = [change for change in changes if (change.kind is None) is told]
            if some:
                parts.append(self._part(some, engine, told=told))
        plan = together(parts)
        return plan if len(parts) == 1 else plan.sort(COMMIT_VERSION.name)

    def _part(self, changes: list[FileChange], engine: str | Executor, *, told: bool) -> Plan:
        import pyarrow as pa

        snapshot = self._snapshot
        texts = to_arrow(ADD).field("partitionValues").type
        values = pa.chunked_array([pa.array([c.file["partitionValues"] for c in changes], texts)])
        paths = pa.array([c.file["path"] for c in changes], pa.string())
        path, deleted = self.schema.unused("path"), self.schema.unused("deleted")
        arrays: dict[str, Any] = {path: resolve_all(snapshot.table, paths)}
        arrays.update(partition_arrays(snapshot, values))
        arrays[COMMIT_VERSION.name] = pa.array([c.version for c in changes], pa.int64())
        micros = pa.array([c.millis * 1000 for c in changes], pa.int64())
        arrays[COMMIT_TIMESTAMP.name] = micros.cast(to_arrow(TIMESTAMP))
        constants = [*snapshot.partition_columns, COMMIT_VERSION.name, COMMIT_TIMESTAMP.name]
        if not told:
            arrays[CHANGE_TYPE.name] = pa.array([c.kind for c in changes], pa.string())
            constants.append(CHANGE_TYPE.name)
            left_out = self._left_out(changes, engine)
            if left_out is not None:
                arrays[deleted] = left_out
        own = scanned(snapshot.columns.scan_columns(), snapshot.schema)
        columns = Struct((*own.fields, *ADDED))
        named = deleted if deleted in arrays else None
        table = Values(pa.table(arrays))
        scan = DynamicScan(table, "parquet", columns, path, tuple(constants), named)
        return as_declared(scan, snapshot.plain_schema)

    def _left_out(self, changes: list[FileChange], engine: str | Executor) -> pa.Array | None:
        """The rows of each file that did not change."""
        import numpy as np
        import pyarrow as pa

        type_ = to_arrow(ADD).field("deletionVector").type
        both = [*(c.file for c in changes), *(c.other or {} for c in changes)]
        vectors = pa.chunked_array([pa.array([f.get("deletionVector") for f in both], type_)])
        found = deleted_positions(self._snapshot, vectors, self.table.log_engine(engine))
        if found is None and all(c.other is None for c in changes):
            return None
        none = np.array([], np.int64)
        parts: list[Positions | None] = []
        for number, change in enumerate(changes):
            own = _positions(found, number, none)
            if change.other is None:
                parts.append(own if len(own) else None)
                continue
            other = _positions(found, number + len(changes), none)
            # A deleted row was live here and is not there; an inserted one the other way round.
            changed = np.setdiff1d(other, own)
            rows = self._row_count(change.file, engine)
            parts.append(np.setdiff1d(np.arange(rows), changed))
        return positions_array(parts)

    def _row_count(self, file: Mapping[str, Any], engine: str | Executor) -> int:
        """How many rows a file holds, by its footer: statistics may be wrong."""
        import pyarrow as pa

        from millpond.plan import aggregates as agg

        paths = resolve_all(self.table.location, pa.array([file["path"]]))
        scan = DynamicScan(Values(pa.table({"path": paths})), "parquet", Struct())
        counted = scan.aggregate(n=agg.count()).to_pylist(engine=self.table.log_engine(engine))
        rows: int = counted[0]["n"]
        return rows

    def to_batches(self, *, engine: str | Executor = "auto") -> Iterator[pa.RecordBatch]:
        """Yield the changed rows, version by version, as the log of the range is read.

        A commit that can't be read is an error when its turn comes, after the rows before it.
        """
        rows = self.table.engine(engine)
        for changes in self._some(engine):
            try:
                yield from self._plan_of(changes, engine).execute(engine=rows)
            except SourceError as error:
                raise _told(self.table.location, error) from error

    def to_arrow(self, *, engine: str | Executor = "auto") -> pa.Table:
        """All changed rows in memory."""
        import pyarrow as pa

        batches = list(self.to_batches(engine=engine))
        return pa.Table.from_batches(batches, to_arrow_schema(self.schema))

    def to_spark(self, session: SparkSession | None = None) -> DataFrame:
        """The changed rows as a DataFrame."""
        from millpond.kernel.data import to_dataframe

        try:
            return to_dataframe(self.plan(), session)
        except SourceError as error:
            raise _told(self.table.location, error) from error

    def explain(self, *, phases: bool = False, engine: str | Executor = "auto", **how: Any) -> str:
        """The plan of the rows; with `phases`, how their files were found, too."""
        text = self.plan(engine).explain(engine=self.table.engine(engine), **how)
        if not phases:
            return text
        machine = self.state_machine(engine)
        machine.run_to_terminal()
        return f"{machine.explain()}\n{text}"


def _told(table: str, error: SourceError) -> MillpondError:
    """A file of changes that says nothing of their kind is the table's trouble."""
    if CHANGE_TYPE.name not in error.message:
        return missing_file(table, error)
    return CorruptLogError(
        f"the changes of {table} can't be read: {error.message}",
        table=table,
        path=error.path or None,
        hint="it is not known what happened to its rows: read the changes before it or after it",
    )


def _positions(found: pa.Array | None, number: int, none: Positions) -> Positions:
    if found is None or not found[number].is_valid:
        return none
    positions: Positions = found[number].values.to_numpy()
    return positions
