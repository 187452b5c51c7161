"""Parquet footers as a schema and as statistics for estimates."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from millpond.base.errors import SchemaError
from millpond.base.seals import BrokenSealError, mark_in
from millpond.engine.arrow.source.bounds import Bounds, bounds_of, leaf_statistics
from millpond.engine.arrow.source.described import open_parquet
from millpond.engine.arrow.source.files import local_path, not_as_written, unreadable
from millpond.engine.arrow.source.leaves import Layout
from millpond.engine.arrow.source.rowgroup import READ_ERRORS
from millpond.plan import types as t
from millpond.plan.arrow import from_arrow
from millpond.plan.paths import Name, format_path
from millpond.plan.sources import ColumnStats
from millpond.plan.unite import united_type

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from millpond.engine.arrow.source.files import Files

_LOOKED_AT = 10
"""So many row groups tell enough for estimates: of thousands of files, scanning begins at once."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Footer:
    """What a file's footer tells."""

    path: str
    size: int
    rows: int
    metadata: Any
    layout: Layout
    schema: t.Struct
    refused: dict[str, SchemaError]
    """Columns that can't be read, and why."""

    @property
    def group_count(self) -> int:
        """How many row groups it tells about."""
        return int(self.metadata.num_row_groups)


def parquet_schema(
    paths: list[str], files: Files, needed: Container[str] | None = None
) -> tuple[list[Footer], t.Struct]:
    """The footers of files, and the columns of all of them, united by name.

    Columns that can't be read, or are too different to be one, are errors, if they are needed (all
    are, if that is not said); otherwise they are left out.
    """
    footers = [_footer(path, files) for path in paths]
    united: dict[str, tuple[t.Field, str]] = {}
    refused: dict[str, SchemaError] = {}
    for footer in footers:
        refused = {**footer.refused, **refused}
        for field in footer.schema:
            known = united.get(field.name)
            try:
                found = _unite(known, (field, footer.path)) if known else field
            except SchemaError as error:
                refused.setdefault(field.name, error)
            else:
                united[field.name] = (found, known[1] if known else footer.path)
    for name, reason in refused.items():
        if needed is None or name in needed:
            raise reason
        united.pop(name, None)
    everywhere = set.intersection(*(set(footer.schema.names) for footer in footers))
    fields = (
        t.Field(f.name, f.type, f.nullable or f.name not in everywhere) for f, _ in united.values()
    )
    return footers, t.Struct(tuple(fields))


def _footer(path: str, files: Files) -> Footer:
    file = files.open(path)
    try:
        size = file.size()
        remote = local_path(path) is None
        parquet, _ = open_parquet(file, remote=remote, required=mark_in(path))
        schema = parquet.schema_arrow
        layout = Layout(path, schema, parquet.metadata.num_columns)
    except BrokenSealError as error:
        raise not_as_written(path, str(error)) from error
    except READ_ERRORS as error:
        raise unreadable(path, error) from error
    finally:
        files.release(file)
    fields: dict[str, t.Field] = {}
    refused: dict[str, SchemaError] = {}
    for field in schema:
        try:
            if field.name in fields:
                raise SchemaError(f"{schema.names.count(field.name)} columns have this name")
            fields[field.name] = t.Field(field.name, _type_of(field.type), field.nullable)
        except SchemaError as error:
            refused[field.name] = SchemaError(
                f"column {field.name} of {path}: {error.message}",
                hint="leave it out with columns=[...], or write the file without it",
            )
    kept = t.Struct(tuple(f for name, f in fields.items() if name not in refused))
    metadata = parquet.metadata
    return Footer(path, size, metadata.num_rows, metadata, layout, kept, refused)


def _type_of(type_: pa.DataType) -> t.DataType:
    """A file's type as ours; nanoseconds are read as microseconds, wherever they are."""
    if at.is_timestamp(type_):
        return t.TIMESTAMP_NTZ if type_.tz is None else t.TIMESTAMP
    if at.is_struct(type_):
        members = (type_.field(i) for i in range(type_.num_fields))
        return t.Struct(tuple(t.Field(m.name, _type_of(m.type), m.nullable) for m in members))
    if at.is_map(type_):
        nullable = type_.item_field.nullable
        return t.Map(_type_of(type_.key_type), _type_of(type_.item_type), nullable)
    if at.is_list(type_) or at.is_large_list(type_) or at.is_fixed_size_list(type_):
        return t.List(_type_of(type_.value_type), type_.value_field.nullable)
    return from_arrow(type_)


def _unite(known: tuple[t.Field, str], other: tuple[t.Field, str]) -> t.Field:
    """One field for a column of two files; what can't be united names both files and types."""
    type_ = united_type(known[0].type, other[0].type)
    if type_ is None:
        here, there = (f"{field.type} in {path}" for field, path in (known, other))
        raise SchemaError(
            f"column {known[0].name} is {here} and {there}",
            hint="scan them apart, or leave the column out with columns=[...]",
        )
    return t.Field(known[0].name, type_, known[0].nullable or other[0].nullable)


def parquet_stats(footers: list[Footer], schema: t.Struct) -> tuple[ColumnStats, ...]:
    """Limits and nulls of every scalar leaf outside lists.

    Estimates are made of them, so of many row groups some are enough: the first, the last, and some
    between them. Where rows are in order, that are the limits of all.
    """
    groups = [(footer, group) for footer in footers for group in range(footer.group_count)]
    some = [
        (footer, footer.metadata.row_group(group))
        for footer, group in (groups[at] for at in _spread(len(groups)))
    ]
    rows = sum(group.num_rows for _, group in some)
    if not rows:
        return ()
    return tuple(_stats(some, steps, type_, rows) for steps, type_ in _leaves(schema))


def _spread(count: int) -> list[int]:
    """At most so many places among these as are looked at.

    >>> _spread(3), _spread(100)
    ([0, 1, 2], [0, 11, 22, 33, 44, 55, 66, 77, 88, 99])
    """
    most = min(count, _LOOKED_AT)
    return [at * (count - 1) // max(most - 1, 1) for at in range(most)]


def _leaves(schema: t.Struct) -> Iterator[tuple[tuple[str, ...], t.DataType]]:
    todo: list[tuple[tuple[str, ...], t.DataType]] = [
        ((field.name,), field.type) for field in reversed(schema.fields)
    ]
    while todo:
        steps, type_ = todo.pop()
        if isinstance(type_, t.Struct):
            todo += [((*steps, f.name), f.type) for f in reversed(type_.fields)]
        elif t.is_orderable(type_):
            yield steps, type_


def _stats(
    groups: list[tuple[Footer, Any]], steps: tuple[str, ...], type_: t.DataType, rows: int
) -> ColumnStats:
    nulls: int | None = 0
    found: list[Bounds] = []
    for footer, group in groups:
        leaf = footer.layout.leaf(steps)
        if leaf is None:
            nulls = None if nulls is None else nulls + group.num_rows
            continue
        chunk, column = group.column(leaf), footer.metadata.schema.column(leaf)
        statistics = leaf_statistics(chunk, column, footer.path)
        bounds = bounds_of(statistics, chunk, column, type_)
        if not bounds.all_null:
            found.append(bounds)
        if nulls is not None:
            counted = statistics is not None and statistics.has_null_count
            nulls = nulls + statistics.null_count if counted else None
    lows, highs = [b.low for b in found], [b.high for b in found]
    low = _shown(min(lows), type_) if lows and None not in lows else None
    high = _shown(max(highs), type_) if highs and None not in highs else None
    path = format_path(tuple(Name(step) for step in steps))
    return ColumnStats(path, low, high, None if nulls is None else nulls / rows)


def _shown(value: Any, type_: t.DataType) -> Any:
    """A limit as a Python value that `literal` takes; None if it can't be one."""
    try:
        if type_ == t.STRING:
            return value.decode()
        if type_ == t.DATE:
            return dt.date(1970, 1, 1) + dt.timedelta(days=value)
        if type_ in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
            moment = _EPOCH + dt.timedelta(microseconds=value)
            return moment if type_ == t.TIMESTAMP else moment.replace(tzinfo=None)
    except (UnicodeDecodeError, OverflowError):
        return None
    return value
