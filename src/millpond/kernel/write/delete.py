"""Rows that a predicate chooses are deleted: marked by deletion vectors, or files written anew."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from millpond.kernel.data import (
    data_plan,
    data_scan,
    deleted_positions,
    partition_arrays,
    positions_array,
)
from millpond.kernel.dv import pack, union
from millpond.kernel.once import check_once
from millpond.kernel.paths import resolve_all
from millpond.kernel.scan import FILE_COLUMNS
from millpond.kernel.write.stats import loosened
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.expr import col, lit
from millpond.plan.sources import DynamicScan, Values
from millpond.plan.types import LONG, STRING, Field, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    snapshot: Snapshot,
    adds: Sequence[Mapping[str, Any]],
    predicate: Expr,
    *,
    engine: str | Executor,
    log_engine: str | Executor,
) -> list[Touched]:
    """Of some live files those with rows to delete."""
    if not adds:
        return []
    files = _table(adds)
    check_once(snapshot.table, files)
    counts, hits = _hits(snapshot, files, predicate, engine)
    vectors = deleted_positions(snapshot, files.column("deletionVector"), log_engine)
    touched = []
    for number, add in enumerate(adds):
        before = np.array([], np.int64)
        if vectors is not None and vectors[number].is_valid:
            before = vectors[number].values.to_numpy()
        after = union(before, hits[number])
        if len(after) > len(before):
            touched.append(Touched(add, counts[number], before, after))
    return touched


def _hits(
    snapshot: Snapshot, files: pa.Table, predicate: Expr, engine: str | Executor
) -> tuple[list[int], list[Positions]]:
    """For each file its number of rows, and the positions that satisfy the predicate.

    Every row is looked at, deleted ones too, in order: that is what positions are counted by.
    """
    path, number = snapshot.schema.unused("path"), snapshot.schema.unused("file")
    arrays: dict[str, Any] = {path: resolve_all(snapshot.table, files.column("path"))}
    arrays.update(partition_arrays(snapshot, files.column("partitionValues")))
    arrays[number] = pa.array(np.arange(files.num_rows))
    columns = Struct((*snapshot.columns.scan_columns().fields, Field(number, LONG)))
    constants = (*snapshot.partition_columns, number)
    rows = DynamicScan(Values(pa.table(arrays)), "parquet", columns, path, constants)
    judged = rows.select(col(number).alias("file"), predicate.coalesce(False).alias("hit"))
    counts = [0] * files.num_rows
    hits: list[list[Positions]] = [[] for _ in range(files.num_rows)]
    for batch in judged.execute(engine=engine):
        numbers = batch.column("file").to_numpy()
        found = batch.column("hit").to_numpy(zero_copy_only=False)
        edges = np.flatnonzero(np.diff(numbers)) + 1
        for start, end in zip((0, *edges), (*edges, len(numbers)), strict=True):
            file = int(numbers[start])
            hits[file].append(np.flatnonzero(found[start:end]) + counts[file])
            counts[file] += int(end - start)
    empty = np.array([], np.int64)
    return counts, [np.concatenate(parts) if parts else empty for parts in hits]


def mark_rows(touched: Sequence[Touched]) -> tuple[str, bytes, list[dict[str, Any]]]:
    """A file of new deletion vectors: its path, its bytes, and the adds that refer to it."""
    packed = pack([item.after for item in touched], file_id=uuid.uuid4())
    adds = [
        {
            **item.add,
            "dataChange": True,
            "stats": loosened(item.add.get("stats"), item.rows),
            "deletionVector": vector.to_dict(),
        }
        for item, vector in zip(touched, packed.vectors, strict=True)
    ]
    return packed.path, packed.content, adds


def remaining(snapshot: Snapshot, touched: Sequence[Touched]) -> Plan:
    """The rows of touched files that stay."""
    return _without(snapshot, [item.add for item in touched], [item.after for item in touched])


def deleted_rows(snapshot: Snapshot, touched: Sequence[Touched]) -> Plan:
    """The rows that go, as change data."""
    kept = []
    for item in touched:
        alive = np.setdiff1d(np.arange(item.rows), item.after)
        kept.append(union(item.before, alive))
    return _changed(_without(snapshot, [item.add for item in touched], kept), "delete")


def all_rows(
    snapshot: Snapshot, adds: Sequence[Mapping[str, Any]], change: str, log_engine: str | Executor
) -> Plan:
    """All live rows of some files, as change data."""
    return _changed(live_rows(snapshot, adds, log_engine), change)


def live_rows(
    snapshot: Snapshot, adds: Sequence[Mapping[str, Any]], log_engine: str | Executor
) -> Plan:
    """All live rows of some files, in the order of the files."""
    return data_plan(snapshot, _table(adds), engine=log_engine)


def count_rows(
    snapshot: Snapshot,
    adds: Sequence[Mapping[str, Any]],
    engine: str | Executor,
    log_engine: str | Executor,
) -> int:
    """How many live rows some files have."""
    from millpond.plan import aggregates as agg

    rows = live_rows(snapshot, adds, log_engine)
    count: int = rows.aggregate(n=agg.count()).to_pylist(engine=engine)[0]["n"]
    return count


def _changed(plan: Plan, change: str) -> Plan:
    return plan.with_columns(**{CHANGE_TYPE.name: lit(change)})


def _without(
    snapshot: Snapshot, adds: Sequence[Mapping[str, Any]], deleted: Sequence[Positions]
) -> DynamicScan:
    """The rows of files without those at some positions."""
    plan = data_scan(snapshot, _table([{**add, "deletionVector": None} for add in adds]))
    files = plan.input
    assert isinstance(files, Values)
    name = snapshot.schema.unused("deleted")
    named = Values(files.data.append_column(name, positions_array(deleted)))
    return DynamicScan(named, "parquet", plan.columns, plan.path_column, plan.constants, name)


def _table(adds: Sequence[Mapping[str, Any]]) -> pa.Table:
    from millpond.kernel.actions import ADD

    rows = [{name: add.get(name) for name in FILE_COLUMNS} for add in adds]
    return pa.Table.from_pylist(rows, to_arrow_schema(ADD.select(FILE_COLUMNS)))
