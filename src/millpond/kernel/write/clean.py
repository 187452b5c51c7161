"""Clean-up of a log: files that have expired, and that no version needs which stays readable."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.base.errors import UnsupportedFeatureError
from millpond.base.store import open_store
from millpond.kernel.actions import SIDECAR, log_columns, picked
from millpond.kernel.durations import LOG_FILES, duration_millis
from millpond.kernel.features import is_catalog_managed
from millpond.kernel.names import (
    LOG_DIRECTORY,
    SIDECARS,
    STAGED_COMMITS,
    file_name,
    parse_staged_name,
)
from millpond.kernel.phase import scan_log, together
from millpond.kernel.segment import LogFile, LogSegmentBuilder
from millpond.kernel.times import to_millis
from millpond.kernel.write.features import check_upkeep
from millpond.kernel.write.listed import listed, millis
from millpond.plan.expr import path

if TYPE_CHECKING:
    import datetime as dt

    from millpond.base.store import Store
    from millpond.kernel.table import DeltaTable
    from millpond.plan.executor import Executor


@dataclass(frozen=True, slots=True)
class Removed:
    """What a clean-up took away, and the oldest version that can still be read."""

    paths: tuple[str, ...]
    oldest_version: int


def clean_log(
    table: DeltaTable,
    *,
    now: dt.datetime | None = None,
    before: dt.datetime | None = None,
    dry_run: bool = False,
) -> Removed:
    """Remove files of the log that have expired and that no readable version needs.

    Everything before the newest checkpoint that has itself expired goes; without a checkpoint
    nothing does. What was written `before` a time has expired, or else what is older than
    `delta.logRetentionDuration` says. A time without a zone is in UTC.
    """
    check_upkeep(table.snapshot)
    if is_catalog_managed(table.protocol):
        raise UnsupportedFeatureError(
            f"the log of {table.location} is looked after by the catalog that manages the table",
            table=table.location,
            features=("catalogManaged",),
            hint="let the catalog clean it",
        )
    if before is not None:
        cutoff = to_millis(before, table.location)
    else:
        moment = int(time.time() * 1000) if now is None else to_millis(now, table.location)
        cutoff = moment - (duration_millis(table.metadata, LOG_FILES) or 0)
    store = open_store(table.location, settings=table.settings)
    files = listed(store, table.location)
    builder = LogSegmentBuilder(table.location, max_version=table.version)
    for file in files:
        if file.name.kind == "checkpoint" and file.modified <= cutoff:
            builder.add_file(file)
    keep = builder.latest_checkpoint()
    if keep is None:
        oldest = min((f.name.version for f in files if f.name.kind == "commit"), default=0)
        return Removed((), oldest)
    expired = [f for f in files if f.name.end < keep.version and f.modified <= cutoff]
    stay = [f for f in files if f.name.kind == "checkpoint" and f not in expired]
    start = len(table.location) + 1
    gone = [file.path[start:] for file in expired]
    gone += _unused_sidecars(store, stay, cutoff, table.log_engine("auto"))
    gone += _old_staged(store, cutoff, keep.version)
    if not dry_run:
        # Oldest first, so that what stays has no gap; checkpoints last, as others build on them.
        for name in sorted(gone, key=lambda p: (".checkpoint." in p, p)):
            store.delete(name)
    return Removed(tuple(sorted(gone)), keep.version)


def _unused_sidecars(
    store: Store, checkpoints: list[LogFile], cutoff: int, engine: str | Executor
) -> list[str]:
    """Sidecars that have expired and that no remaining checkpoint names."""
    found = store.list(f"{LOG_DIRECTORY}/{SIDECARS}/")
    old = [meta.path for meta in found if millis(meta) <= cutoff]
    manifests = [f for f in checkpoints if f.name.parts is None and f.size]
    if not old or not manifests:
        return old
    columns = log_columns(sidecar=picked(SIDECAR, "path"))
    name = path("sidecar.path")
    rows = together(scan_log(manifests, columns, versions=False)).filter(name.is_not_null())
    named = rows.select(name.alias("path")).to_arrow(engine=engine).column("path").to_pylist()
    used = {file_name(item) for item in named}
    return [item for item in old if file_name(item) not in used]


def _old_staged(store: Store, cutoff: int, version: int) -> list[str]:
    """Staged commits that have expired, of versions that a checkpoint covers."""
    gone = []
    for meta in store.list(f"{LOG_DIRECTORY}/{STAGED_COMMITS}/"):
        name = parse_staged_name(file_name(meta.path))
        if name is not None and name.version < version and millis(meta) <= cutoff:
            gone.append(meta.path)
    return gone
