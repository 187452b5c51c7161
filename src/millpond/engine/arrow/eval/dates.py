"""Parts of dates and timestamps, truncation and buckets, in UTC and also before 1970.

Everything works on microseconds or days as numbers; a zone would only make Arrow look one up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.values import (
    Kernel,
    Value,
    fail,
    from_raw,
    is_scalar,
    null_mask,
    raw,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millpond.plan.bound import BoundExpr

    Numbers = np.ndarray[Any, Any]

SECOND: Final = 1_000_000
DAY: Final = 86_400 * SECOND
_FIRST_DAY: Final = -((1 << 63) // DAY)
_WIDTHS: Final = {"second": SECOND, "minute": 60 * SECOND, "hour": 3600 * SECOND, "day": DAY}
_CALENDAR: Final = {"year": "M8[Y]", "quarter": "M8[M]", "month": "M8[M]"}
_KERNEL_YEARS: Final = 10_000 * 366 * DAY
"""Arrow's calendar holds 16-bit years; within this distance of 1970 it is right."""


def _calendar_part(
    kernel: Callable[[Value], Value], from_days: Callable[[Numbers], Numbers]
) -> Kernel:
    def part(expr: BoundExpr, args: Sequence[Value]) -> Value:
        del expr
        column = _naive(args[0])
        if _is_near(column):
            return kernel(column).cast(pa.int32())
        days = raw(column) if pa.types.is_date32(column.type) else raw(column) // DAY
        numbers = from_days(days.astype(np.int64).astype("M8[D]"))
        return from_raw(numbers.astype(np.int32), pa.int32(), null_mask(column))

    return part


def _is_near(column: pa.Array) -> bool:
    day = pa.types.is_date32(column.type)
    limit = _KERNEL_YEARS // DAY if day else _KERNEL_YEARS
    ends = pc.min_max(column.view(pa.int32() if day else pa.int64()))
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is None or (low > -limit and high < limit)


def _year(days: Numbers) -> Numbers:
    return days.astype("M8[Y]").astype(np.int64) + 1970


def _month(days: Numbers) -> Numbers:
    return days.astype("M8[M]").astype(np.int64) % 12 + 1


def _day(days: Numbers) -> Numbers:
    first: Numbers = days.astype("M8[M]").astype("M8[D]")
    return (days - first).astype(np.int64) + 1


def _clock_part(width: int, count: int) -> Kernel:
    def part(expr: BoundExpr, args: Sequence[Value]) -> Value:
        del expr
        column = args[0]
        numbers = raw(column) // width % count
        return from_raw(numbers.astype(np.int32), pa.int32(), null_mask(column))

    return part


def _date_trunc(expr: BoundExpr, args: Sequence[Value]) -> Value:
    column, unit = args[0], _literal(args[1])
    if unit in _WIDTHS:
        return _floored(expr, column, _WIDTHS[unit], 0)
    if unit == "week":
        return _floored(expr, column, 7 * DAY, 4 * DAY)  # 1970-01-05 was a Monday
    if _is_near(column):
        return pc.floor_temporal(_naive(column), unit=unit).view(column.type)
    days = (raw(column) // DAY).astype("M8[D]").astype(_CALENDAR[unit])
    if unit == "quarter":
        months = days.astype(np.int64)
        days = (months - months % 3).astype("M8[M]")
    first = days.astype("M8[D]").astype(np.int64)
    return _checked(expr, column, first * DAY, first < _FIRST_DAY)


def _time_bucket(expr: BoundExpr, args: Sequence[Value]) -> Value:
    return _floored(expr, args[0], _literal(args[1]), 0)


def _floored(expr: BoundExpr, column: pa.Array, width: int, origin: int) -> pa.Array:
    """The largest `origin + n * width` that is not after each timestamp."""
    micros = raw(column)
    # Near the first timestamp the product wraps around, and the difference is right again.
    over = micros - micros // width * width
    if origin:
        over = np.where(over >= origin, over - origin, over + (width - origin))
    start = micros - over
    return _checked(expr, column, start, start > micros)


def _checked(expr: BoundExpr, column: pa.Array, start: Numbers, wrapped: Numbers) -> pa.Array:
    mask = null_mask(column)
    bad = wrapped if mask is None else wrapped & ~mask
    if bad.any():
        raise fail(
            expr, "the start lies before the first timestamp", hint="filter such values out first"
        )
    return from_raw(start, column.type, mask)


def _epoch_micros(expr: BoundExpr, args: Sequence[Value]) -> Value:
    del expr
    return args[0].view(pa.int64())


def _from_epoch_micros(expr: BoundExpr, args: Sequence[Value]) -> Value:
    del expr
    return args[0].view(pa.timestamp("us", tz="UTC"))


def _naive(column: pa.Array) -> pa.Array:
    timestamp = pa.types.is_timestamp(column.type) and column.type.tz is not None
    return column.view(pa.timestamp("us")) if timestamp else column


def _literal(value: Value) -> Any:
    return (value if is_scalar(value) else value[0]).as_py()


KERNELS: Final[Mapping[str, Kernel]] = {
    "year": _calendar_part(pc.year, _year),
    "month": _calendar_part(pc.month, _month),
    "day": _calendar_part(pc.day, _day),
    "hour": _clock_part(3600 * SECOND, 24),
    "minute": _clock_part(60 * SECOND, 60),
    "second": _clock_part(SECOND, 60),
    "date_trunc": _date_trunc,
    "time_bucket": _time_bucket,
    "epoch_micros": _epoch_micros,
    "from_epoch_micros": _from_epoch_micros,
}
