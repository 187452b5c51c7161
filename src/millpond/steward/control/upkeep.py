"""The upkeep of the control table, which it sees to itself: few large files, and no old ones."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from millpond.fs.oplog.log import LogState, NewFile
from millpond.kernel.durations import DELETED_FILES, duration_millis
from millpond.kernel.write.checkpoint import write_checkpoint
from millpond.kernel.write.clean import clean_log
from millpond.kernel.write.state import Tombstones
from millpond.steward.control.records import CATEGORY, read_file, stored_columns, write_table

if TYPE_CHECKING:
    from millpond.fs.oplog.log import RowLog

SMALL_BYTES: Final = 256 << 10
"""Files below this size are written together."""
MOST_ATTEMPTS: Final = 50


def look_after(log: RowLog) -> None:
    """What is due after many commits."""
    compact(log)
    write_checkpoint(log.table())
    remove_old(log)


def compact(log: RowLog) -> int:
    """Write the small files of each category as one; how many there were."""
    table = log.table()
    small: dict[str, list[str]] = {}
    for file in table.files(columns=("path", "partitionValues", "size")).to_arrow().to_pylist():
        if (file["size"] or 0) < SMALL_BYTES:
            small.setdefault(dict(file["partitionValues"])[CATEGORY], []).append(file["path"])
    # Only what is about to go has to be watched.
    state = LogState(table.version, {category: tuple(paths) for category, paths in small.items()})
    new, gone = [], []
    for category, paths in small.items():
        if len(paths) > 1:
            rows = pa.concat_tables([read_file(log.store, p, category) for p in paths])
            content = write_table(stored_columns(rows.sort_by("timestamp")), compression="zstd")
            new.append(NewFile({CATEGORY: category}, content, rows.num_rows))
            gone += [(category, path) for path in paths]
    return len(gone) if new and _exchanged(log, state, new, gone) else 0


def _exchanged(
    log: RowLog, state: LogState, new: list[NewFile], gone: list[tuple[str, str]]
) -> bool:
    """Commit behind whatever others append; not if another one has compacted meanwhile."""
    now = time.time_ns() // 1000
    removed = [removal(category, path, now) for category, path in gone]
    txn_id = str(uuid.uuid4())
    for _ in range(MOST_ATTEMPTS):
        made = log.commit(
            state,
            new,
            {"timestamp": now},
            txn_id=txn_id,
            removed=removed,
            data_change=False,
            operation="OPTIMIZE",
        )
        if made is not None:
            return True
        state = log.refresh(state)
        if any(path not in state.files.get(category, ()) for category, path in gone):
            return False
    return False


def removal(category: str, path: str, micros: int) -> dict[str, Any]:
    """Return the action that removes a file from the table."""
    return {
        "path": path,
        "deletionTimestamp": micros // 1000,
        "dataChange": False,
        "extendedFileMetadata": True,
        "partitionValues": {CATEGORY: category},
    }


def find_old(log: RowLog, before: datetime | None = None) -> list[str]:
    """Return what has not been live for a while: files, and commits of the log.

    That is as long as the table's properties say, or since `before` where that is later.
    """
    table = log.table()
    now = time.time()
    keep = (duration_millis(table.metadata, DELETED_FILES) or 0) / 1000
    cutoff = max(now - keep, before.timestamp() if before is not None else 0.0)
    needed = set(table.files(columns=("path",)).to_arrow()["path"].to_pylist())
    # Readers may still be at what was live a moment ago, however old the file is.
    removed = Tombstones(table.snapshot, int(cutoff * 1000) - 1).batches(table.log_engine("auto"))
    needed |= {row["path"] for batch in removed for row in batch.column("remove").to_pylist()}
    old = [
        meta.path
        for meta in log.store.list(f"{CATEGORY}=")
        if meta.path not in needed and meta.modified.timestamp() < cutoff
    ]
    moment = datetime.fromtimestamp(cutoff, UTC)
    return [*old, *clean_log(table, before=moment, dry_run=True).paths]


def remove_old(log: RowLog, before: datetime | None = None) -> int:
    """Delete it; how many objects that were."""
    old = find_old(log, before)
    for path in old:
        log.store.delete(path)
    return len(old)
