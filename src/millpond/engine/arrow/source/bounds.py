"""What a row group's statistics say about a leaf column: limits that no value of it crosses.

Bounds may be wider than the data (long texts are cut by writers), never narrower. Floating point
columns may hold NaN whatever their statistics say, and NaN is the largest number.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
from dataclasses import dataclass
from typing import Any

from millpond.engine.arrow.source.files import damaged
from millpond.plan import types as t

_MICROS = {"milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000)}
_DAY = 86_400_000_000
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Values lie between `low` and `high`, as `comparable` makes them; None is unknown."""

    low: Any = None
    high: Any = None
    may_be_null: bool = True
    all_null: bool = False
    may_be_nan: bool = False

    def with_nulls(self) -> Bounds:
        """The same limits for a path that can be null by its nature, as one element of a list."""
        return Bounds(self.low, self.high, True, self.all_null, self.may_be_nan)


UNKNOWN = Bounds(may_be_nan=True)
ALL_NULL = Bounds(all_null=True)


def comparable(value: Any, type_: t.DataType) -> Any:
    """A literal as what bounds hold: text as bytes, days and microseconds as whole numbers."""
    if value is None:
        return None
    if type_ == t.STRING:
        return value.encode()
    if type_ == t.DATE:
        return value.toordinal() - _EPOCH_DAY
    if type_ in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (moment - _EPOCH) // _MICROSECOND
    return value


def constant_bounds(value: Any, type_: t.DataType) -> Bounds:
    """The bounds of a column that has one value throughout a file."""
    if value is None:
        return ALL_NULL
    if isinstance(value, float) and math.isnan(value):
        return Bounds(may_be_null=False, may_be_nan=True)
    found = comparable(value, type_)
    return Bounds(found, found, may_be_null=False)


def leaf_bounds(chunk: Any, column: Any, type_: t.DataType, path: str) -> Bounds:
    """The bounds of a column chunk of a file, read as a type.

    `chunk` is pyarrow's `ColumnChunkMetaData`, `column` its `ColumnSchema`.
    """
    return bounds_of(leaf_statistics(chunk, column, path), chunk, column, type_)


def leaf_statistics(chunk: Any, column: Any, path: str) -> Any:
    """pyarrow's statistics of a column chunk; None if there are none."""
    # Where they contradict each other, pyarrow would end the process instead of raising.
    if chunk.physical_type != column.physical_type:
        kinds = f"{column.physical_type} and {chunk.physical_type}"
        raise damaged(path, f"the footer of {path} calls column {column.path} {kinds}")
    return chunk.statistics


def bounds_of(found: Any, chunk: Any, column: Any, type_: t.DataType) -> Bounds:
    """What statistics of a chunk say of it, read as a type."""
    fractional = t.is_fractional(type_)
    if found is None:
        return Bounds(may_be_nan=fractional)
    nulls = found.null_count if found.has_null_count else None
    if nulls is not None and nulls == chunk.num_values:
        return ALL_NULL
    low = high = None
    if found.has_min_max:
        low = _read(found, found.min_raw, "min", column, type_)
        high = _read(found, found.max_raw, "max", column, type_)
    return Bounds(low, high, nulls != 0, may_be_nan=fractional)


def _read(found: Any, raw: Any, which: str, column: Any, type_: t.DataType) -> Any:
    """A limit of the statistics as `comparable` would make it; None if it can't be trusted."""
    if type_ in (t.STRING, t.BINARY):
        return raw if isinstance(raw, bytes) else None
    if isinstance(type_, t.Decimal):
        value = getattr(found, which)
        if isinstance(value, int):
            return decimal.Decimal(value)
        return value if isinstance(value, decimal.Decimal) else None
    if type_ == t.BOOLEAN:
        return raw if isinstance(raw, bool) else None
    if type_ in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return _read_time(raw, json.loads(column.logical_type.to_json()), type_)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    if isinstance(raw, int) and raw < 0 and _is_unsigned(column):
        return None
    if t.is_fractional(type_):
        return None if math.isnan(raw) else float(raw)
    return raw if isinstance(raw, int) else None


def _is_unsigned(column: Any) -> bool:
    """Whether a column holds whole numbers of which the sign is another digit."""
    return json.loads(column.logical_type.to_json()).get("isSigned") is False


def _read_time(raw: Any, logical: dict[str, Any], type_: t.DataType) -> int | None:
    if not isinstance(raw, int) or isinstance(raw, bool):
        return None
    if logical.get("Type") == "Date":
        return raw if type_ == t.DATE else raw * _DAY
    if logical.get("Type") == "Timestamp" and logical.get("timeUnit") in _MICROS:
        times, per = _MICROS[logical["timeUnit"]]
        return raw * times // per
    return None
