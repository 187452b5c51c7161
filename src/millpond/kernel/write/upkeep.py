"""The upkeep of a log: checksums, compaction of commits, removal of what has expired."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.base.errors import ObjectExistsError, ObjectNotFoundError, PlanError
from millpond.base.store import open_store
from millpond.kernel.actions import ADD, log_columns
from millpond.kernel.durations import LOG_FILES, duration_millis
from millpond.kernel.names import (
    LOG_DIRECTORY,
    SIDECARS,
    STAGED_COMMITS,
    checksum_name,
    compaction_name,
    file_name,
    parse_name,
)
from millpond.kernel.open import SnapshotBuilder
from millpond.kernel.phase import scan_log, together
from millpond.kernel.replay import AddRemoveDedup
from millpond.kernel.scan import Scan, checkpoint_files, keyed
from millpond.kernel.segment import LogFile, LogSegmentBuilder
from millpond.kernel.write.commit import encode_commit, log_path
from millpond.kernel.write.state import plain
from millpond.plan.expr import col

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

    from millpond.base.settings import Settings
    from millpond.base.store import Store
    from millpond.kernel.snapshot import Snapshot
    from millpond.kernel.table import DeltaTable


def write_checksum(table: DeltaTable, *, settings: Settings | None = None) -> dict[str, Any]:
    """Write the version's checksum: its protocol, metadata, and how many files of what size."""
    files, size = 0, 0
    for batch in Scan(table.snapshot, ("size",)).machine("arrow"):
        files += batch.num_rows
        size += sum(n or 0 for n in batch.column("size").to_pylist())
    found = checksum(table.snapshot, files=files, size=size)
    put_checksum(open_store(table.location, settings=settings), table.version, found)
    return found


def checksum(
    snapshot: Snapshot, *, files: int, size: int, txn_id: str | None = None
) -> dict[str, Any]:
    """What a checksum holds."""
    found: dict[str, Any] = {} if txn_id is None else {"txnId": txn_id}
    return found | {
        "tableSizeBytes": size,
        "numFiles": files,
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": snapshot.metadata.to_dict(),
        "protocol": snapshot.protocol.to_dict(),
    }


def put_checksum(store: Store, version: int, found: Mapping[str, Any]) -> None:
    """Write a checksum; one that is there stays."""
    text = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
    try:
        store.put(log_path(checksum_name(version)), text.encode())
    except ObjectExistsError:
        return


def read_checksum(store: Store, version: int) -> dict[str, Any] | None:
    """A version's checksum, if it has one that can be read."""
    try:
        found = json.loads(store.get(log_path(checksum_name(version))))
    except (ObjectNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def compact_log(
    table: DeltaTable, start: int, end: int, *, settings: Settings | None = None
) -> str:
    """Write the commits from `start` to `end` as one file that says what is left of them."""
    if not 0 <= start < end <= table.version:
        raise PlanError(
            f"versions {start} to {end} can't be compacted",
            hint=f"two or more versions up to {table.version}, oldest first",
        )
    store = open_store(table.location, settings=settings)
    commits = _commits(store, table.location, start, end)
    dedup = AddRemoveDedup(table.location, keep_removes=True)
    from millpond.kernel.actions import DOMAIN, METADATA, PROTOCOL, REMOVE, TXN

    newest = tuple(reversed(commits))
    files = keyed(together(scan_log(newest, log_columns(add=ADD, remove=REMOVE))))
    rows = files.filter_ordered(dedup).select("add", "remove").to_arrow(engine="arrow")
    columns = log_columns(protocol=PROTOCOL, metaData=METADATA, txn=TXN, domainMetadata=DOMAIN)
    other = together(scan_log(newest, columns))
    has = [col(name).is_not_null() for name in columns.names]
    others = other.filter(has[0] | has[1] | has[2] | has[3]).to_arrow(engine="arrow")
    actions: list[tuple[str, Mapping[str, Any]]] = []
    seen: set[tuple[str, Any]] = set()
    for row in others.to_pylist(maps_as_pydicts="lossy"):
        for name in columns.names:
            if row[name] is None:
                continue
            key = (name, row[name].get("appId") or row[name].get("domain"))
            if key not in seen:
                seen.add(key)
                actions.append((name, plain(row[name])))
    for row in rows.to_pylist(maps_as_pydicts="lossy"):
        kind = "add" if row["add"] is not None else "remove"
        actions.append((kind, {"dataChange": False, **_with_map(plain(row[kind]))}))
    path = log_path(compaction_name(start, end))
    store.put(path, encode_commit(actions))
    return path


def _with_map(action: dict[str, Any]) -> dict[str, Any]:
    return {**action, "partitionValues": action.get("partitionValues", {})}


def _commits(store: Store, table: str, start: int, end: int) -> tuple[LogFile, ...]:
    builder = LogSegmentBuilder(table, max_version=end)
    for file in _listed(store, table):
        builder.add_file(file)
    missing = [v for v in range(start, end + 1) if v not in builder.commits]
    if missing:
        raise PlanError(f"the log of {table} has no commit {missing[0]} any more")
    return tuple(builder.commits[v] for v in range(start, end + 1))


def _listed(store: Store, table: str) -> list[LogFile]:
    prefix = f"{LOG_DIRECTORY}/"
    found = []
    for meta in store.list(prefix):
        rest = meta.path[len(prefix) :]
        name = None if "/" in rest else parse_name(rest)
        if name is not None:
            modified = int(meta.modified.timestamp() * 1000)
            found.append(LogFile(f"{table}/{meta.path}", name, meta.size, modified))
    return found


@dataclass(frozen=True, slots=True)
class Removed:
    """What a clean-up took away, and the oldest version that can still be read."""

    paths: tuple[str, ...]
    oldest_version: int


def clean_log(
    table: DeltaTable,
    *,
    now: dt.datetime | None = None,
    dry_run: bool = False,
    settings: Settings | None = None,
) -> Removed:
    """Remove files of the log that have expired and that no readable version needs.

    Everything before the newest checkpoint that has itself expired goes; without a checkpoint
    nothing does.
    """
    millis = int(time.time() * 1000) if now is None else int(now.timestamp() * 1000)
    cutoff = millis - (duration_millis(table.metadata, LOG_FILES) or 0)
    store = open_store(table.location, settings=settings)
    files = _listed(store, table.location)
    builder = LogSegmentBuilder(table.location, max_version=table.version)
    for file in files:
        if file.name.kind == "checkpoint" and file.modified <= cutoff:
            builder.add_file(file)
    keep = builder.latest_checkpoint()
    if keep is None:
        oldest = min((f.name.version for f in files if f.name.kind == "commit"), default=0)
        return Removed((), oldest)
    start = len(table.location) + 1
    gone = [
        file.path[start:]
        for file in files
        if file.name.end < keep.version and file.modified <= cutoff
    ]
    gone += _unused_sidecars(store, table, keep.version, cutoff, gone)
    gone += _old_staged(store, cutoff, keep.version)
    if not dry_run:
        # Checkpoints go last: a reader that finds one also finds what it needs.
        for path in sorted(gone, key=lambda p: (".checkpoint." in p, p)):
            store.delete(path)
    return Removed(tuple(sorted(gone)), keep.version)


def _unused_sidecars(
    store: Store, table: DeltaTable, oldest: int, cutoff: int, gone: list[str]
) -> list[str]:
    """Sidecars that no remaining checkpoint names."""
    prefix = f"{LOG_DIRECTORY}/{SIDECARS}/"
    old = [
        meta.path for meta in store.list(prefix) if int(meta.modified.timestamp() * 1000) <= cutoff
    ]
    if not old:
        return []
    going = {file_name(path) for path in gone}
    used: set[str] = set()
    versions = {
        f.name.version
        for f in _listed(store, table.location)
        if f.name.kind == "checkpoint" and file_name(f.path) not in going
    }
    for version in sorted(versions):
        if version >= oldest:
            snapshot = SnapshotBuilder(table.location).at_version(version).build()
            _, sidecars = checkpoint_files(snapshot, "arrow")
            used |= {file_name(file.path) for file in sidecars}
    return [path for path in old if file_name(path) not in used]


def _old_staged(store: Store, cutoff: int, version: int) -> list[str]:
    prefix = f"{LOG_DIRECTORY}/{STAGED_COMMITS}/"
    return [
        meta.path
        for meta in store.list(prefix)
        if int(meta.modified.timestamp() * 1000) <= cutoff
        and file_name(meta.path)[:20].isdigit()
        and int(file_name(meta.path)[:20]) < version
    ]
