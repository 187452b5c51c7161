"""Series and time: which column is the time, from when to when the rows are, and bounds on them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from millpond.base.errors import PathNotFoundError, PathTypeError
from millpond.fs.entry import EntryType, from_micros, to_micros
from millpond.fs.paths import split_version
from millpond.plan.arguments import wrong
from millpond.provider.rows import Asked
from millpond.provider.times import conditions
from millpond.provider.url import is_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.fs.entry import Row
    from millpond.kernel.table import DeltaTable
    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.rows import Rows
    from millpond.steward.scope import Scope

Times: TypeAlias = tuple[int | None, int | None]
"""The first and last time in some rows, in microseconds; None if no row has one."""


class Wanted(TypedDict, total=False):
    """Which of a path's rows are wanted, and what of them."""

    columns: Sequence[str] | None
    predicate: Expr | None
    time_start: datetime | None
    """Of a series: not before, and `time_end`, not after."""
    time_end: datetime | None


def event_times(table: DeltaTable, adds: Sequence[dict[str, Any]], column: str) -> Times:
    """The first and last time in new files, from the statistics that Parquet keeps.

    They are exact, and numbers, since a file may hold times that Python has no datetime for. The
    statistics of a Delta log are rounded to milliseconds.
    """
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
            if statistics is not None and statistics.has_min_max:  # nulls have none
                found += [statistics.min_raw, statistics.max_raw]
    return (min(found), max(found)) if found else (None, None)


def spanning(one: Times, other: Times) -> Times:
    """The first and last time of both.

    >>> spanning((0, 5), (None, None)), spanning((0, 5), (-2, 3))
    ((0, 5), (-2, 5))
    """
    firsts = [time for time in (one[0], other[0]) if time is not None]
    lasts = [time for time in (one[1], other[1]) if time is not None]
    return min(firsts, default=None), max(lasts, default=None)


def rows_of(scope: Scope, path: str, **wanted: Unpack[Wanted]) -> Plan:
    """The rows of a path, stored or computed, or those that a URL names, within a time range.

    Both ends of a range belong to it. A time without a zone is UTC, and rows without a time are in
    no range. Files that lie outside are not opened, and neither are their row groups decoded.
    """
    if is_url(path):
        return _wanted_rows(_named_rows(scope, path), wanted)
    if scope.row(path).entry_type.is_dynamic:
        return _wanted_rows(scope.derivation.rows(path), wanted)
    return stored_rows(scope, path, **wanted)


def columns_of(scope: Scope, path: str) -> Struct:
    """Return the columns of the rows of a path, stored or computed, or of a URL."""
    if is_url(path):
        return _named_rows(scope, path).schema
    if scope.row(path).entry_type.is_dynamic:
        return scope.derivation.rows(path).schema
    return scope.delta(path).schema


def _named_rows(scope: Scope, url: str) -> Rows:
    reading = scope.derivation.reading("/")
    found = reading.match(url)
    if not found:
        raise PathNotFoundError(f"nothing matches {url}", path=url, hint="pond list shows all")
    return reading.united(url, found)


def _wanted_rows(rows: Rows, wanted: Wanted) -> Plan:
    asked = asked_between(wanted.get("time_start"), wanted.get("time_end"))
    if rows.time_column is None and not asked.is_all:
        raise PathTypeError(
            f"{rows.path} has no time", path=rows.path, hint="filter its rows: .plan().filter(...)"
        )
    plan = rows.plan(asked)
    predicate, columns = wanted.get("predicate"), wanted.get("columns")
    plan = plan if predicate is None else plan.filter(predicate)
    return plan if columns is None else plan.select(*columns)


def stored_rows(scope: Scope, path: str, **wanted: Unpack[Wanted]) -> Plan:
    """The rows of a table or a series, within the bounds that were set."""
    row, table = scope.row(path), scope.delta(path)
    conditions = [*_bounds(scope, path, row, table), *_range(path, row, table, wanted)]
    predicate = wanted.get("predicate")
    conditions += [] if predicate is None else [predicate]
    both = reduce(and_, conditions) if conditions else None
    scan, wrote = table.scan(wanted.get("columns"), both), added(scope, path, row)
    if row.entry_type is EntryType.SERIES:  # as it was appended
        scan = scan.oldest_first()
    return (scan if wrote is None else scan.only(wrote)).plan()


def added(scope: Scope, path: str, row: Row) -> set[str] | None:
    """The files that `@v3` of a series means; None where all that are live count."""
    is_one = split_version(path).version is not None and row.entry_type is EntryType.SERIES
    return scope.added_files(row) if is_one and row.begins_with != row.version else None


def _range(path: str, row: Row, table: DeltaTable, wanted: Wanted) -> list[Expr]:
    """What the caller asks for."""
    start, end = wanted.get("time_start"), wanted.get("time_end")
    if row.time_column is None and (start is not None or end is not None):
        raise _has_no_time(path, row)
    return within(row, table, start, end)


def _has_no_time(path: str, row: Row) -> PathTypeError:
    return PathTypeError(
        f"{path} is a {row.entry_type} and has no time",
        path=path,
        hint="filter its rows: .plan().filter(...)",
    )


def _bounds(scope: Scope, path: str, row: Row, table: DeltaTable) -> list[Expr]:
    """What `set-bounds` says; it holds for old versions, too."""
    latest = scope.row(split_version(path).path)
    ends = (latest.min_override, latest.max_override)
    return within(row, table, *(None if end is None else from_micros(end) for end in ends))


def within(row: Row, table: DeltaTable, start: datetime | None, end: datetime | None) -> list[Expr]:
    """What rows between two times satisfy."""
    if row.time_column is None:
        return []
    return conditions(table.schema, row.time_column, asked_between(start, end))


def asked_between(start: datetime | None, end: datetime | None) -> Asked:
    """A range of times; both ends belong to it."""
    return Asked(*(None if each is None else to_micros(in_utc(each)) for each in (start, end)))


def in_utc(time: datetime) -> datetime:
    """A time in UTC; without a zone it is taken for that already.

    >>> in_utc(datetime(2024, 5, 30)).isoformat()
    '2024-05-30T00:00:00+00:00'
    """
    if not isinstance(time, datetime):
        raise wrong("a time", "a datetime", time, hint="datetime.fromisoformat(...) reads a text")
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
