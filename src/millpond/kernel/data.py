"""Reading rows: live files become a plan again, with partition values, deletion vectors and names.

live files -> (ReadVectors) -> DynamicScan over them -> filter -> columns
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from millpond.base.errors import (
    CorruptLogError,
    DataFileMissingError,
    DeletionVectorError,
    MillpondError,
    PlanError,
    SourceError,
)
from millpond.kernel.age import by_age
from millpond.kernel.dv import DeletionVector
from millpond.kernel.engines import is_arrow
from millpond.kernel.machine import Consume, StateMachine, StateMachinePhase, Terminus
from millpond.kernel.once import Repeats, check_once
from millpond.kernel.partitions import read_column
from millpond.kernel.paths import resolve_all
from millpond.kernel.phase import BasePhase
from millpond.kernel.scan import ScanBuilder
from millpond.kernel.widening import as_declared, scanned
from millpond.plan.arrow import to_arrow
from millpond.plan.sources import DynamicScan, Values
from millpond.plan.types import BINARY, LONG, Field, List, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millpond.kernel.roaring import Positions
    from millpond.kernel.scan import Scan
    from millpond.kernel.snapshot import Snapshot
    from millpond.kernel.table import DeltaTable
    from millpond.plan.executor import Executor
    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan

NEEDED: Final = ("path", "partitionValues", "size", "deletionVector")
"""What of a live file has to be known to read its rows."""
_MODIFIED: Final = "modificationTime"
_TAGS: Final = "tags"
_SPAN: Final = Struct((Field("content", BINARY), Field("offset", LONG), Field("length", LONG)))
_CHUNK_FILES: Final = 50_000
"""So many files make one plan when rows stream: a table may have millions."""


@dataclass(frozen=True)
class ReadVectors(BasePhase):
    """The deletion vectors that are files of their own, as row positions."""

    vectors: tuple[DeletionVector, ...]

    def plan(self) -> Plan:
        """The bytes of each vector, in order."""
        import pyarrow as pa

        rows = [
            (vector.location(self.table), start, length)
            for vector in self.vectors
            for start, length in vector.spans
        ]
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        types = (pa.string(), pa.int64(), pa.int64())
        arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
        named = Values(pa.table(arrays, names=["path", "offset", "length"]))
        return DynamicScan(named, "bytes", _SPAN, constants=("offset", "length"))

    def next(self, rows: pa.Table) -> StateMachinePhase[list[Positions]]:
        """Their positions."""
        contents = iter(rows.column("content").to_pylist())
        found = []
        for vector in self.vectors:
            parts = [next(contents, b"") for _ in vector.spans]
            found.append(vector.decode(*parts, table=self.table))
        return Terminus(found)

    def failed(self, error: MillpondError) -> MillpondError:
        """A vector's file that is gone is named."""
        if isinstance(error, SourceError):
            return DeletionVectorError(
                f"a deletion vector of {self.table} can't be read: {error.message}",
                table=self.table,
                hint="it is not known which rows are deleted: restore the file, "
                "or read an older version",
            )
        return error


def data_plan(snapshot: Snapshot, files: pa.Table, *, engine: str | Executor = "arrow") -> Plan:
    """The rows of live files (with the columns `NEEDED`), all columns of the table."""
    scan = data_scan(snapshot, files, engine=engine)
    wide = replace(scan, columns=scanned(scan.columns, snapshot.schema))
    return as_declared(wide, snapshot.plain_schema)


def data_scan(
    snapshot: Snapshot, files: pa.Table, *, engine: str | Executor = "arrow"
) -> DynamicScan:
    """The one scan below `data_plan`, its columns in the table's types."""
    import pyarrow as pa

    check_once(snapshot.table, files)
    path, deleted = snapshot.schema.unused("path"), snapshot.schema.unused("deleted")
    arrays: dict[str, Any] = {path: resolve_all(snapshot.table, files.column("path"))}
    arrays.update(partition_arrays(snapshot, files.column("partitionValues")))
    positions = deleted_positions(snapshot, files.column("deletionVector"), engine)
    if positions is not None:
        arrays[deleted] = positions
    return DynamicScan(
        Values(pa.table(arrays)),
        "parquet",
        snapshot.columns.scan_columns(),
        path,
        snapshot.partition_columns,
        None if positions is None else deleted,
        _bytes(files),
    )


def _bytes(files: pa.Table) -> int | None:
    """How much the files have together, if the log says so of each."""
    import pyarrow.compute as pc

    sizes = files.column("size") if "size" in files.schema.names else None
    if sizes is None or sizes.null_count:
        return None
    return int(pc.sum(sizes).as_py() or 0)


def partition_arrays(snapshot: Snapshot, values: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    """The partition columns of files, typed, by their logical names."""
    if snapshot.partition_columns and values.null_count:
        raise CorruptLogError(
            f"a file of {snapshot.table} has no partition values",
            table=snapshot.table,
            hint="an older version may still be readable",
        )
    found = {}
    for name in snapshot.partition_columns:
        field = snapshot.schema.field(name)
        found[name] = read_column(
            values,
            snapshot.columns.physical_name(field),
            field.type,
            column=name,
            table=snapshot.table,
        )
        if not field.nullable and found[name].null_count:
            raise CorruptLogError(
                f"a file of {snapshot.table} has no value of {name!r}, which is never null",
                table=snapshot.table,
                hint="an older version may still be readable",
            )
    return found


def deleted_positions(
    snapshot: Snapshot, vectors: pa.ChunkedArray, engine: str | Executor
) -> pa.Array | None:
    """For each file the rows that are deleted, null where it has no vector; None if none has."""
    if vectors.null_count == len(vectors):
        return None
    rows = vectors.to_pylist()
    described = [
        None if row is None else DeletionVector.from_dict(row, table=snapshot.table) for row in rows
    ]
    phase = ReadVectors(snapshot.table, tuple(v for v in described if v is not None))
    machine: StateMachine[list[Positions]] = StateMachine(
        Consume(phase), engine, table=snapshot.table
    )
    decoded = iter(machine.run_to_terminal())
    return positions_array([None if vector is None else next(decoded) for vector in described])


def positions_array(parts: Sequence[Positions | None]) -> pa.Array:
    """Row positions of many files as one column; None is null."""
    import numpy as np
    import pyarrow as pa

    lengths = [0 if part is None else len(part) for part in parts]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if offsets[-1] >= 1 << 31:
        raise PlanError(
            f"{offsets[-1]:,} deleted rows are too many for one scan",
            hint="scan with a predicate that leaves out some files",
        )
    known = [part for part in parts if part is not None]
    values = np.concatenate(known) if known else np.array([], np.int64)
    return pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)),
        pa.array(values, pa.int64()),
        to_arrow(List(LONG)),
        mask=pa.array([part is None for part in parts]),
    )


class TableScan:
    """The rows of a table: some columns, those that satisfy a predicate. Nothing is read yet."""

    def __init__(
        self,
        table: DeltaTable,
        columns: Sequence[str] | None,
        predicate: Expr | None,
        *,
        only: Iterable[str] | None = None,
        oldest_first: bool = False,
    ) -> None:
        self.table = table
        self._only = None if only is None else frozenset(only)
        self._oldest_first = oldest_first
        if isinstance(columns, str):
            raise PlanError(f"columns are a list of names, not {columns!r}", hint=f"[{columns!r}]")
        self.columns = None if columns is None else tuple(columns)
        self.predicate = predicate
        if self.columns is not None:
            table.schema.select(self.columns)
        needed = (*NEEDED, _MODIFIED, _TAGS) if oldest_first else NEEDED
        self._builder = ScanBuilder(table.snapshot).with_columns(*needed).with_predicate(predicate)
        self._scan = self._builder.build()

    def __repr__(self) -> str:
        chosen = "" if self.predicate is None else f", where {self.predicate}"
        return f"TableScan({self.table!r}, {', '.join(self.schema.names)}{chosen})"

    @property
    def schema(self) -> Struct:
        """The columns that come."""
        schema = self.table.schema
        return schema if self.columns is None else schema.select(self.columns)

    def only(self, paths: Iterable[str]) -> TableScan:
        """The rows of some live files alone, by the paths that `files()` of the table gives."""
        return TableScan(
            self.table,
            self.columns,
            self.predicate,
            only=paths,
            oldest_first=self._oldest_first,
        )

    def oldest_first(self) -> TableScan:
        """The same rows, those of files that were written earlier first."""
        return TableScan(
            self.table, self.columns, self.predicate, only=self._only, oldest_first=True
        )

    def state_machine(self, engine: str | Executor = "auto") -> StateMachine[Scan]:
        """The machine that finds the files whose rows are wanted."""
        return self._scan.machine(self.table.files_engine(engine))

    @cached_property
    def _files(self) -> pa.Table:
        return self.files()

    def files(self, engine: str | Executor = "auto") -> pa.Table:
        """The files whose rows are wanted."""
        import pyarrow as pa

        from millpond.plan.arrow import to_arrow_schema

        batches, scan = self.state_machine(engine).collect()
        return self._chosen(pa.Table.from_batches(batches, to_arrow_schema(scan.schema)))

    def _chosen(self, files: pa.Table) -> pa.Table:
        """Without those that `only` leaves out, and in order, if that is wanted."""
        if self._only is not None:
            chosen = [path in self._only for path in files.column("path").to_pylist()]
            files = files.filter(chosen)
        return _oldest_first(files) if self._oldest_first else files

    def plan(self, engine: str | Executor = "auto") -> Plan:
        """The rows as a plan over the live files; finding them reads the log."""
        files = self._files if engine == "auto" else self.files(engine)
        return self._rows(files, engine)

    def _rows(self, files: pa.Table, engine: str | Executor) -> Plan:
        plan = data_plan(self.table.snapshot, files, engine=self.table.log_engine(engine))
        if self.predicate is not None:
            plan = plan.filter(self.predicate)
        return plan if self.columns is None else plan.select(*(_column(c) for c in self.columns))

    def to_batches(self, *, engine: str | Executor = "auto") -> Iterator[pa.RecordBatch]:
        """The rows as they come, in bounded memory."""
        for files in self._chunks(engine):
            yield from self._run(self._rows(files, engine), engine)

    def _chunks(self, engine: str | Executor) -> Iterator[pa.Table]:
        """Files by the ten thousands, as the log gives them."""
        if not is_arrow(engine):
            yield self.files(engine)
            return
        has_vectors = self.table.protocol.reads("deletionVectors")
        repeats = Repeats() if has_vectors else None
        for files in self._gathered(engine):
            if repeats is not None and repeats.may_be_in(files):
                check_once(self.table.location, self.files(engine))
                repeats = None  # all are known now
            yield files

    def _gathered(self, engine: str | Executor) -> Iterator[pa.Table]:
        import pyarrow as pa

        held: list[pa.RecordBatch] = []
        for batch in self.state_machine(engine):
            held.append(batch)
            if sum(b.num_rows for b in held) >= _CHUNK_FILES:
                yield self._chosen(pa.Table.from_batches(held))
                held = []
        if held:
            yield self._chosen(pa.Table.from_batches(held))

    def _run(self, plan: Plan, engine: str | Executor) -> Iterator[pa.RecordBatch]:
        try:
            yield from plan.execute(engine=self.table.engine(engine), ordered=False)
        except SourceError as error:
            raise missing_file(self.table.location, error) from error

    def to_arrow(self, *, engine: str | Executor = "auto") -> pa.Table:
        """All rows in memory."""
        import pyarrow as pa

        from millpond.plan.arrow import to_arrow_schema

        return pa.Table.from_batches(
            list(self.to_batches(engine=engine)), to_arrow_schema(self.schema)
        )

    def to_spark(self, session: SparkSession | None = None) -> DataFrame:
        """Return the rows as a DataFrame over Spark's own Parquet reader.

        A live file that is not there is an error now; one that goes later, Spark reports itself.
        """
        try:
            return to_dataframe(self.plan(), session)
        except SourceError as error:
            raise missing_file(self.table.location, error) from error

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow as pa

        from millpond.plan.arrow import to_arrow_schema

        schema = to_arrow_schema(self.schema)
        reader = pa.RecordBatchReader.from_batches(schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def explain(self, *, phases: bool = False, engine: str | Executor = "auto", **how: Any) -> str:
        """The plan of the rows; with `phases`, how their files were found, too."""
        text = self.plan(engine).explain(engine=self.table.engine(engine), **how)
        if not phases:
            return text
        machine = self.state_machine(engine)
        machine.run_to_terminal()
        return f"{machine.explain()}\n{text}"


def _oldest_first(files: pa.Table) -> pa.Table:
    """Return files in the order in which they became part of the table."""
    import pyarrow as pa

    facts = files.select(["path", _MODIFIED, _TAGS]).to_pylist()
    order = sorted(range(len(facts)), key=lambda at: by_age(facts[at]))
    return files.take(pa.array(order, pa.int64()))


_ENGINES: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def to_dataframe(plan: Plan, session: SparkSession | None) -> DataFrame:
    """A plan as a DataFrame of a session, or of the one that millpond keeps."""
    from millpond.plan.optimizer import optimize
    from millpond.plan.plugins import ENGINES
    from millpond.plan.run import engine_named

    if session is None:
        engine: Any = engine_named("spark")
    else:
        engine = _ENGINES.get(session)
        if engine is None:
            make: Any = ENGINES.get("spark")
            # Kept with the session: files that a DataFrame needs live as long as its engine.
            engine = _ENGINES[session] = make(session=session)
    found: DataFrame = engine.to_dataframe(optimize(plan))
    return found


def _column(name: str) -> Expr:
    from millpond.plan.expr import col

    return col(name)


def missing_file(table: str, error: SourceError) -> MillpondError:
    """A live file that is gone is the table's trouble, not the engine's."""
    if not error.missing:
        return error
    return DataFileMissingError(
        f"{error.path} is a live file of {table}, but it is not there",
        table=table,
        path=error.path,
        hint="it may have been vacuumed: open the latest version, or restore the file",
    )
