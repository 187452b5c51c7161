"""What a node is: its kind, versions, columns, times, and the Delta table behind it.

Everything comes from the OpLog and from logs of tables; no rows and no bytes are read.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.base.errors import MillpondError
from millpond.fs.entry import EntryType
from millpond.fs.paths import split_version
from millpond.steward.rows.host import host_files, host_plan, host_table
from millpond.steward.scope import as_time

if TYPE_CHECKING:
    from millpond.base.settings import Settings
    from millpond.fs.entry import Row
    from millpond.kernel.table import DeltaTable
    from millpond.plan.types import Struct
    from millpond.steward.places import Place
    from millpond.steward.scope import Scope, Stat

Facts = dict[str, Any]


def describe(scope: Scope, path: str) -> Facts:
    """Everything that is known of a path, or of one version of it."""
    stat = scope.stat(path, follow=False)
    if stat.entry_type is EntryType.SYMLINK:
        return {**_common(path, stat), "target": stat.target, "leads_to": _leads_to(scope, path)}
    stat = scope.stat(path)
    found = _common(path, stat)
    if stat.is_directory:
        inside = scope.children(path)
        kinds = Counter(str(child.entry_type) for child in inside.values())
        return {**found, "entries": len(inside), "kinds": dict(kinds)}
    row = scope.row(path)
    found["versions"] = _versions(scope, split_version(path).path)
    if stat.factory is not None:
        found["factory"] = stat.factory
        found |= {"config": json.loads(row.config)} if row.config else {}
    if stat.entry_type.is_bytes:
        rows = scope.byte_rows(path)
        found["size"] = sum(row.size or 0 for row in rows)
        found["blake3"] = row.blake3
    if stat.entry_type.is_table:
        found |= _of_table(scope, path, row)
    if stat.entry_type in (EntryType.DYNAMIC_TABLE, EntryType.DYNAMIC_SERIES):
        found |= _of_computed(scope, path)
    return found


def describe_place(place: Place, *, settings: Settings | None = None) -> Facts:
    """What is known of files of this machine."""
    path = place.path.rstrip("/") or "/"
    if place.reader is not None and place.reader.format.is_table:
        table = host_table(place, settings=settings)
        return {
            "path": path,
            "type": place.format,
            "columns": _columns(table.schema),
            "delta": _delta(table),
        }
    files = host_files(path)
    size = sum(Path(file).stat().st_size for file in files)
    found: Facts = {"path": path, "type": place.format or "data", "files": len(files), "size": size}
    if place.format is not None:
        plan = host_plan(place, settings=settings)
        found["columns"] = _columns(plan.schema)
        counts = [file.rows for file in getattr(plan, "files", ())]
        if counts and None not in counts:
            found["rows"] = sum(counts)
    return found


def describe_files(scope: Scope, place: Place) -> Facts:
    """What is known of raw files of the pond that are read by a format; they are, for it."""
    from millpond.steward.rows.selection import format_rows, matches

    found = matches(scope, place)
    rows = format_rows(scope, place, found)
    facts: Facts = {"path": place.text, "type": place.format, "files": len(found)}
    counts = [piece.rows for piece in rows.pieces()]
    if None not in counts:
        facts["rows"] = sum(count or 0 for count in counts)
    facts["columns"] = _columns(rows.schema)
    return facts if rows.time_column is None else {**facts, "time": {"column": rows.time_column}}


def _common(path: str, stat: Stat) -> Facts:
    found: Facts = {"path": path, "type": str(stat.entry_type)}
    if stat.node_id:  # the root has none of these
        found |= {
            "version": stat.version,
            "modified": stat.modified,
            "txn_seq": stat.txn_seq,
            "node_id": stat.node_id,
            "size": stat.size,
        }
    return found


def _leads_to(scope: Scope, path: str) -> str | None:
    """Where a link ends; None if that is nowhere."""
    try:
        return scope.locate(path).real_path
    except MillpondError:
        return None


def _versions(scope: Scope, path: str) -> Facts:
    rows = scope.versions(path)
    return {"count": len(rows), "first": rows[0].time, "last": rows[-1].time}


def _of_table(scope: Scope, path: str, row: Row) -> Facts:
    table = scope.delta(path)
    found: Facts = {"columns": _columns(table.schema)}
    if row.time_column is not None:
        found["time"] = _time(scope, path, row)
    return {**found, "delta": _delta(table)}


def _of_computed(scope: Scope, path: str) -> Facts:
    """The columns, which no query has to run for, and the time."""
    rows = scope.derivation.rows(path)
    found: Facts = {"columns": _columns(rows.schema)}
    return found if rows.time_column is None else {**found, "time": {"column": rows.time_column}}


def _columns(schema: Struct) -> list[Facts]:
    return [
        {"name": field.name, "type": str(field.type), "nullable": field.nullable}
        for field in schema
    ]


def _time(scope: Scope, path: str, row: Row) -> Facts:
    """The time column, from when to when rows are, and the bounds that were set."""
    plain, version = split_version(path)
    latest = scope.row(plain)
    first = row.version if version is not None else latest.begins_with
    known = [
        stat
        for stat in (scope.stat_of(plain, each) for each in scope.versions(plain))
        if first <= stat.version <= row.version
    ]
    firsts = [stat.min_event_time for stat in known if stat.min_event_time is not None]
    lasts = [stat.max_event_time for stat in known if stat.max_event_time is not None]
    return {
        "column": row.time_column,
        "first": min(firsts, default=None),
        "last": max(lasts, default=None),
        "min_bound": as_time(latest.min_override),
        "max_bound": as_time(latest.max_override),
    }


def _delta(table: DeltaTable) -> Facts:
    from millpond.kernel.write.stats import record_count

    files = table.files(columns=("path", "size", "stats", "deletionVector")).to_arrow().to_pylist()
    counts = [record_count(file) for file in files]
    known = [count for count in counts if count is not None]
    protocol = table.protocol
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return {
        "location": table.location,
        "version": table.version,
        "rows": sum(known) if len(known) == len(counts) else None,
        "files": len(files),
        "bytes": sum(file["size"] for file in files),
        "partitioned_by": list(table.partition_columns),
        "protocol": [protocol.min_reader_version, protocol.min_writer_version],
        "features": sorted(features),
        "properties": dict(table.metadata.configuration),
    }
