"""Rows that a predicate chooses are deleted: marked by deletion vectors, or files written anew."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from millpond.kernel.data import data_plan, deleted_positions, partition_arrays
from millpond.kernel.dv import pack, union
from millpond.kernel.paths import resolve_all
from millpond.kernel.scan import ScanBuilder
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.expr import col, lit
from millpond.plan.sources import DynamicScan, Values
from millpond.plan.types import LONG, STRING, Field, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.kernel.roaring import Positions
    from millpond.kernel.snapshot import Snapshot
    from millpond.plan.executor import Executor
    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan

CHANGE_TYPE: Final = Field("_change_type", STRING)


@dataclass(frozen=True, slots=True)
class Touched:
    """A live file with rows to delete."""

    add: Mapping[str, Any]
    rows: int
    """All rows that the file holds, deleted ones included."""
    before: Positions
    """What was deleted already."""
    after: Positions
    """What is deleted now."""

    @property
    def is_gone(self) -> bool:
        """Whether no row is left."""
        return len(self.after) == self.rows


def find_rows(
    snapshot: Snapshot, predicate: Expr, *, engine: str | Executor
) -> tuple[list[Touched], list[Mapping[str, Any]]]:
    """The files with rows to delete, and all files that were looked at."""
    builder = ScanBuilder(snapshot).with_predicate(predicate)
    batches, scan = builder.machine(_for_log(engine)).collect()
    files = pa.Table.from_batches(batches, to_arrow_schema(scan.schema))
    adds = files.to_pylist(maps_as_pydicts="lossy")
    if not adds:
        return [], []
    counts, hits = _hits(snapshot, files, predicate, engine)
    vectors = deleted_positions(snapshot, files.column("deletionVector"), _for_log(engine))
    touched = []
    for number, add in enumerate(adds):
        before = np.array([], np.int64)
        if vectors is not None and vectors[number].is_valid:
            before = vectors[number].values.to_numpy()
        after = union(before, hits[number])
        if len(after) > len(before):
            touched.append(Touched(add, counts[number], before, after))
    return touched, adds


def _hits(
    snapshot: Snapshot, files: pa.Table, predicate: Expr, engine: str | Executor
) -> tuple[list[int], list[Positions]]:
    """For each file its number of rows, and the positions that satisfy the predicate.

    Every row is looked at, deleted ones too, in order: that is what positions are counted by.
    """
    path, number = "path", "file"
    while path in snapshot.schema:
        path += "_"
    while number in snapshot.schema:
        number += "_"
    arrays: dict[str, Any] = {path: resolve_all(snapshot.table, files.column("path"))}
    arrays.update(partition_arrays(snapshot, files.column("partitionValues")))
    arrays[number] = pa.array(np.arange(files.num_rows))
    columns = Struct((*snapshot.columns.scan_columns().fields, Field(number, LONG)))
    constants = (*snapshot.partition_columns, number)
    rows = DynamicScan(Values(pa.table(arrays)), "parquet", columns, path, constants)
    judged = rows.select(col(number), predicate.coalesce(False).alias("hit"))
    counts = [0] * files.num_rows
    hits: list[list[Positions]] = [[] for _ in range(files.num_rows)]
    for batch in judged.execute(engine=engine):
        numbers = batch.column(0).to_numpy()
        found = batch.column(1).to_numpy(zero_copy_only=False)
        edges = np.flatnonzero(np.diff(numbers)) + 1
        for start, end in zip((0, *edges), (*edges, len(numbers)), strict=True):
            file = int(numbers[start])
            hits[file].append(np.flatnonzero(found[start:end]) + counts[file])
            counts[file] += int(end - start)
    empty = np.array([], np.int64)
    return counts, [np.concatenate(parts) if parts else empty for parts in hits]


def mark_rows(touched: list[Touched]) -> tuple[str, bytes, list[dict[str, Any]]] | None:
    """The file of new deletion vectors, and the adds that refer to it; None if nothing is left."""
    left = [item for item in touched if not item.is_gone]
    if not left:
        return None
    packed = pack([item.after for item in left], file_id=uuid.uuid4())
    adds = []
    for item, vector in zip(left, packed.vectors, strict=True):
        add = {name: value for name, value in item.add.items() if value is not None}
        adds.append(
            {
                **add,
                "dataChange": True,
                "stats": loosened(add.get("stats"), item.rows),
                "deletionVector": vector.to_dict(),
            }
        )
    return packed.path, packed.content, adds


def loosened(stats: str | None, rows: int) -> str:
    """Statistics of a file with a deletion vector: its bounds hold, but may be too wide."""
    import json

    try:
        found = json.loads(stats) if stats else {}
    except ValueError:
        found = {}
    if not isinstance(found, dict):
        found = {}
    found = {**found, "numRecords": rows, "tightBounds": False}
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def remaining(snapshot: Snapshot, touched: list[Touched], *, engine: str | Executor) -> Plan:
    """The rows of touched files that stay."""
    return _over(snapshot, touched, [item.after for item in touched], engine)


def deleted_rows(snapshot: Snapshot, touched: list[Touched], *, engine: str | Executor) -> Plan:
    """The rows that go, with what happens to them: change data."""
    kept = []
    for item in touched:
        alive = np.setdiff1d(np.arange(item.rows), item.after)
        kept.append(union(item.before, alive))
    plan = _over(snapshot, touched, kept, engine)
    return plan.with_columns(**{CHANGE_TYPE.name: lit("delete")})


def _over(
    snapshot: Snapshot, touched: list[Touched], deleted: list[Positions], engine: str | Executor
) -> Plan:
    files = pa.Table.from_pylist(
        [{**item.add, "deletionVector": None} for item in touched],
        to_arrow_schema(ScanBuilder(snapshot).build().schema),
    )
    plan = data_plan(snapshot, files, engine=_for_log(engine))
    values = plan.input
    assert isinstance(values, Values)
    name = "deleted"
    while name in values.schema:
        name += "_"
    column = pa.array([d.tolist() for d in deleted], pa.list_(pa.int64()))
    named = Values(values.data.append_column(name, column))
    return DynamicScan(named, "parquet", plan.columns, plan.path_column, plan.constants, name)


def _for_log(engine: str | Executor) -> str | Executor:
    return "arrow" if engine == "auto" else engine
