"""Series and time: which column is the time, from when to when the rows are, and bounds on them."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import PathTypeError, SchemaError
from millpond.fs.entry import EntryType, from_micros, to_micros
from millpond.fs.paths import split_version
from millpond.plan.expr import col, lit
from millpond.plan.types import TIMESTAMP, TIMESTAMP_NTZ

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from millpond.fs.entry import Row
    from millpond.kernel.table import DeltaTable
    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.steward.scope import Scope

TIME_COLUMNS: Final = ("timestamp", "Timestamp", "event_time", "time", "ts", "datetime")
"""Where the time of a series is looked for, unless it is said."""


def time_column_of(schema: Struct, declared: str | None, *, path: str) -> str:
    """The column with the time of a series."""
    times = [field.name for field in schema if field.type in (TIMESTAMP, TIMESTAMP_NTZ)]
    if declared is not None:
        if declared not in times:
            raise SchemaError(
                f"{path}: {declared!r} is no column with a timestamp",
                hint=f"such columns are: {', '.join(times) or 'none'}",
            )
        return declared
    for name in TIME_COLUMNS:
        if name in times:
            return name
    raise SchemaError(
        f"{path}: a series needs a column with its time, and none of {', '.join(TIME_COLUMNS)} "
        "is a timestamp",
        hint=f"say which one it is: time_column={times[0]!r}"
        if times
        else "add a timestamp, or write it as a table",
    )


def event_times(
    table: DeltaTable, adds: Sequence[dict[str, Any]], column: str
) -> tuple[int | None, int | None]:
    """The first and last time in new files, from the statistics that Parquet keeps."""
    from urllib.parse import unquote

    import pyarrow as pa
    import pyarrow.parquet as pq

    from millpond.base.store import open_store
    from millpond.engine.arrow.source.storefile import StoreFile

    store = open_store(table.location, settings=table.settings)
    physical = table.snapshot.columns.physical_name(table.snapshot.columns.schema.field(column))
    found: list[int] = []
    for add in adds:
        file = pa.PythonFile(StoreFile(store, unquote(add["path"])), mode="r")
        metadata = pq.read_metadata(file)
        names = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
        at = names.index(physical)
        for group in range(metadata.num_row_groups):
            statistics = metadata.row_group(group).column(at).statistics
            if statistics is not None and statistics.has_min_max:
                found += [_micros(statistics.min), _micros(statistics.max)]
    return (min(found), max(found)) if found else (None, None)


def _micros(value: datetime) -> int:
    return to_micros(value if value.tzinfo else value.replace(tzinfo=UTC))


def rows_of(
    scope: Scope,
    path: str,
    *,
    columns: Sequence[str] | None = None,
    predicate: Expr | None = None,
    time_start: datetime | None = None,
    time_end: datetime | None = None,
) -> Plan:
    """The rows of a path, within the bounds of its series and within a time range."""
    row = scope.row(path)
    if not row.entry_type.is_table:
        raise PathTypeError(f"{path} is a {row.entry_type}: it has no rows", path=path)
    table = scope.table_of(row)
    conditions = [*_bounds(scope, path, row, table), *([] if predicate is None else [predicate])]
    if time_start is not None or time_end is not None:
        if row.time_column is None:
            raise PathTypeError(
                f"{path} is a {row.entry_type} and has no time", path=path, hint="filter by SQL"
            )
        time = col(row.time_column)
        conditions += [] if time_start is None else [time >= _literal(time_start, row, table)]
        conditions += [] if time_end is None else [time <= _literal(time_end, row, table)]
    wanted: Expr | None = None
    for condition in conditions:
        wanted = condition if wanted is None else wanted & condition
    return table.scan(columns, wanted).plan()


def _bounds(scope: Scope, path: str, row: Row, table: DeltaTable) -> list[Expr]:
    """What `set-bounds` says; it holds for old versions, too."""
    if row.entry_type is not EntryType.SERIES or row.time_column is None:
        return []
    latest = scope.row(split_version(path).path)
    time, found = col(row.time_column), []
    if latest.min_override is not None:
        found.append(time >= _literal(from_micros(latest.min_override), row, table))
    if latest.max_override is not None:
        found.append(time <= _literal(from_micros(latest.max_override), row, table))
    return found


def _literal(time: datetime, row: Row, table: DeltaTable) -> Expr:
    assert row.time_column is not None
    is_local = table.schema.field(row.time_column).type == TIMESTAMP_NTZ
    return lit(time.replace(tzinfo=None) if is_local else time)
