"""The whole state of a table as actions: what checkpoints and compactions are made of."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millpond.kernel.actions import ADD, REMOVE, log_columns, picked
from millpond.kernel.durations import DELETED_FILES, duration_millis
from millpond.kernel.phase import scan_log, together, vector_id
from millpond.kernel.replay import AddRemoveDedup
from millpond.kernel.scan import FILE_COLUMNS, Scan, checkpoint_files, keyed
from millpond.plan.expr import col, lit, path
from millpond.plan.make import values
from millpond.plan.sources import Scan as ScanFiles
from millpond.plan.types import Field, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from millpond.kernel.segment import LogFile
    from millpond.kernel.snapshot import Snapshot
    from millpond.plan.executor import Executor
    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan


def live_adds(
    snapshot: Snapshot, engine: str | Executor, parsed: Struct | None = None
) -> Iterator[pa.RecordBatch]:
    """All live files, as an add action has them.

    With the type of `stats_parsed`, also those: a checkpoint may hold statistics as columns alone.
    """
    scan = Scan(snapshot) if parsed is None else _WithParsed(snapshot, parsed=parsed)
    return iter(scan.machine(engine))


@dataclass(frozen=True)
class _WithParsed(Scan):
    """A scan whose rows have the column `stats_parsed`, too."""

    parsed: Struct = field(default_factory=Struct)

    def add_fields(self, *, parsed: bool = False) -> Struct:
        """All that an add action has, and one member more."""
        known = super().add_fields(parsed=parsed)
        return Struct((*known.fields, Field("stats_parsed", self.parsed)))

    def rows(self, adds: Plan, *, parsed: bool = False) -> Plan:
        """The members as columns."""
        del parsed
        names = (*FILE_COLUMNS, "stats_parsed")
        return adds.select(*(path(f'add."{name}"').alias(name) for name in names))


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Removes that still count and are younger than a moment, of commits and the checkpoint."""

    snapshot: Snapshot
    since: int

    @classmethod
    def kept(cls, snapshot: Snapshot) -> Tombstones:
        """Those that the table's retention keeps."""
        now = int(time.time() * 1000)
        kept = duration_millis(snapshot.metadata, DELETED_FILES)
        return cls(snapshot, now - (kept or 0))

    def batches(self, engine: str | Executor) -> Iterator[pa.RecordBatch]:
        """The removes, with one column `remove`."""
        segment = self.snapshot.segment
        dedup = AddRemoveDedup(self.snapshot.table, keep_removes=True)
        young = path("remove.deletionTimestamp").coalesce(0) > lit(self.since)
        if segment.commits:
            yield from removes(segment.cover(), dedup).filter(young).execute(engine=engine)
        if segment.checkpoint is not None:
            known = dedup if segment.commits else None
            yield from self._of_checkpoint(known, young, engine).execute(engine=engine)

    def _of_checkpoint(
        self, dedup: AddRemoveDedup | None, young: Expr, engine: str | Executor
    ) -> Plan:
        files, sidecars = checkpoint_files(self.snapshot, engine)
        scans = scan_log(files, log_columns(remove=REMOVE), versions=False)
        if sidecars:
            scans.append(ScanFiles("parquet", sidecars, log_columns(remove=REMOVE), strict=True))
        rows = together(scans).filter(path("remove.path").is_not_null()).filter(young)
        if dedup is None or not dedup.seen:
            return rows
        keys = [(path("remove.path"), col("path")), (vector_id("remove.deletionVector"), col("dv"))]
        return rows.join(values(dedup.tombstones()), on=keys, how="anti", nulls_equal=True)


def removes(files: Sequence[LogFile], dedup: AddRemoveDedup) -> Plan:
    """The removes that count, of commits newest first."""
    columns = log_columns(add=picked(ADD, "path", "deletionVector"), remove=REMOVE)
    actions = keyed(together(scan_log(files, columns)))
    return actions.filter_ordered(dedup).filter(~col("is_add")).select("remove")


def plain(action: Any, type_: Struct) -> dict[str, Any]:
    """An action from Arrow as JSON has it: without members that are null; in maps null may stand.

    >>> from millpond.kernel.actions import ADD
    >>> plain({"path": "a", "partitionValues": {"p": None}, "size": None}, ADD)
    {'path': 'a', 'partitionValues': {'p': None}}
    """
    found = {}
    for member in type_:
        value = action.get(member.name)
        if value is not None:
            inner = member.type
            found[member.name] = plain(value, inner) if isinstance(inner, Struct) else value
    return found
