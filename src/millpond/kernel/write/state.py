"""The whole state of a table as actions: what checkpoints and compactions are made of."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.kernel.actions import ADD, REMOVE, log_columns, picked
from millpond.kernel.durations import DELETED_FILES, duration_millis
from millpond.kernel.phase import scan_log, together, vector_id
from millpond.kernel.replay import AddRemoveDedup
from millpond.kernel.scan import FILE_COLUMNS, Scan, keyed
from millpond.plan.expr import col, lit, path
from millpond.plan.make import values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from millpond.kernel.segment import LogFile
    from millpond.kernel.snapshot import Snapshot
    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan


def live_adds(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """All live files, as an add action has them."""
    return iter(Scan(snapshot, FILE_COLUMNS).machine("arrow"))


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

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The removes, with one column `remove`."""
        segment = self.snapshot.segment
        dedup = AddRemoveDedup(self.snapshot.table, keep_removes=True)
        young = path("remove.deletionTimestamp").coalesce(0) > lit(self.since)
        if segment.commits:
            rows = removes(segment.cover(), dedup).filter(young)
            yield from rows.execute(engine="arrow")
        if segment.checkpoint is not None:
            yield from self._of_checkpoint(dedup if segment.commits else None, young)

    def _of_checkpoint(self, dedup: AddRemoveDedup | None, young: Expr) -> Iterator[pa.RecordBatch]:
        from millpond.kernel.scan import checkpoint_files

        files, sidecars = checkpoint_files(self.snapshot, "arrow")
        scans = scan_log(files, log_columns(remove=REMOVE), versions=False)
        if sidecars:
            from millpond.plan.sources import Scan as ScanFiles

            scans.append(ScanFiles("parquet", sidecars, log_columns(remove=REMOVE)))
        rows = together(scans).filter(path("remove.path").is_not_null()).filter(young)
        if dedup is not None and dedup.seen:
            keys = [
                (path("remove.path"), col("path")),
                (vector_id("remove.deletionVector"), col("dv")),
            ]
            rows = rows.join(values(dedup.tombstones()), on=keys, how="anti", nulls_equal=True)
        yield from rows.execute(engine="arrow")


def removes(files: Sequence[LogFile], dedup: AddRemoveDedup) -> Plan:
    """The removes that count, of commits newest first."""
    columns = log_columns(add=picked(ADD, "path", "deletionVector"), remove=REMOVE)
    actions = keyed(together(scan_log(files, columns)))
    return actions.filter_ordered(dedup).filter(~col("is_add")).select("remove")


def plain(row: Any) -> Any:
    """An action from Arrow as JSON has it: without what is null."""
    if isinstance(row, dict):
        return {name: plain(value) for name, value in row.items() if value is not None}
    return [plain(item) for item in row] if isinstance(row, list) else row
