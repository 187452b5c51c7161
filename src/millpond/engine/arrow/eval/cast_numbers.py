"""Casts between numbers. What does not fit is null; `casts.py` makes that an error where asked.

Decimals pass through 256 bits, where nothing overflows, and are rounded and checked there. Only
floating point to decimal goes through Python, since it is defined by the number's shortest text.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.values import all_true, from_raw, map_unique, null_mask, raw
from millpond.plan.arrow import to_arrow
from millpond.plan.types import Decimal, is_fractional, is_integral

if TYPE_CHECKING:
    from millpond.plan.types import DataType

_CONTEXT: Final = decimal.Context(prec=80, rounding=decimal.ROUND_HALF_UP)
_SAFE_DIGITS: Final = 18
_EXACT_DIGITS: Final = 15
"""Whole numbers of so many digits are exact as doubles, and so is 10 to the 22nd."""


def convert_number(column: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """A column of numbers as other numbers."""
    if isinstance(target, Decimal):
        if is_fractional(source):
            return map_unique(lambda x: float_to_decimal(x, target), column, to_arrow(target))
        return _to_decimal(column, target)
    if is_fractional(target):
        if isinstance(source, Decimal):
            return _decimal_to_float(column, source, to_arrow(target))
        return column.cast(to_arrow(target), safe=False)
    if is_integral(source):
        return _narrow(column, to_arrow(target))
    if isinstance(source, Decimal):
        return _decimal_to_whole(column, to_arrow(target))
    return _float_to_whole(column, to_arrow(target))


def fit_decimal(value: decimal.Decimal, type_: Decimal) -> decimal.Decimal | None:
    """A number rounded half up to a decimal type, or None where it has too many digits."""
    if not value.is_finite():
        return None
    if value and value.adjusted() >= type_.precision - type_.scale + 1:  # 0e5 is just zero
        return None
    fitted = value.quantize(decimal.Decimal(1).scaleb(-type_.scale), context=_CONTEXT)
    return fitted if len(fitted.as_tuple().digits) <= type_.precision else None


def float_to_decimal(value: float, type_: Decimal) -> decimal.Decimal | None:
    """The shortest text of a number as a decimal."""
    return fit_decimal(decimal.Decimal(repr(value)), type_)


def _narrow(column: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return column.cast(type_)
    except pa.ArrowInvalid:
        low, high = _bounds(type_)
        fits = pc.and_(
            pc.greater_equal(column, pa.scalar(low, column.type)),
            pc.less_equal(column, pa.scalar(high, column.type)),
        )
        return pc.if_else(fits, column, pa.scalar(None, column.type)).cast(type_)


def _bounds(type_: pa.DataType) -> tuple[int, int]:
    half = 1 << (type_.bit_width - 1)
    return -half, half - 1


def _float_to_whole(column: pa.Array, type_: pa.DataType) -> pa.Array:
    low, high = _bounds(type_)
    with np.errstate(invalid="ignore"):
        whole = np.trunc(raw(column).astype(np.float64, copy=False))
        # The bound above is a power of two, so that it is exact at every width.
        fits = (whole >= low) & (whole < high + 1)
        numbers = np.where(fits, whole, 0.0).astype(np.dtype(type_.to_pandas_dtype()))
    mask = null_mask(column)
    if not fits.all():
        mask = ~fits if mask is None else mask | ~fits
    return from_raw(numbers, type_, mask)


def _to_decimal(column: pa.Array, target: Decimal) -> pa.Array:
    """Whole numbers and decimals as a decimal, rounded half up."""
    scale = target.scale
    if pa.types.is_decimal(column.type):
        scale = max(scale, column.type.scale)
        if scale > target.scale and _is_large(column):
            return map_unique(lambda x: fit_decimal(x, target), column, to_arrow(target))
    wide = column.cast(pa.decimal256(76, scale))
    if scale > target.scale:
        wide = pc.round(wide, ndigits=target.scale, round_mode="half_towards_infinity")
    if pa.types.is_decimal(column.type) and _has_room(column.type, target):
        return wide.cast(to_arrow(target))
    limit = decimal.Decimal(10) ** (target.precision - target.scale)
    fits = pc.less(pc.abs(wide), pa.scalar(limit, pa.decimal256(76, scale)))
    if not all_true(fits):
        wide = pc.if_else(fits, wide, pa.scalar(None, wide.type))
    return wide.cast(to_arrow(target))


def _is_large(column: pa.Array) -> bool:
    """Whether some decimal has more digits than 64 bits hold: pyarrow rounds some of those wrong.

    >>> _is_large(pa.array([decimal.Decimal("9223372036854775807.9")], pa.decimal128(38, 18)))
    True
    """
    if column.type.precision <= _SAFE_DIGITS:
        return False
    limit = pa.scalar(decimal.Decimal(1).scaleb(_SAFE_DIGITS - column.type.scale), column.type)
    return bool(pc.any(pc.greater_equal(pc.abs(column), limit)).as_py())


def _has_room(source: pa.DataType, target: Decimal) -> bool:
    """Whether every number has fewer digits before the point than there may be."""
    return bool(source.precision - source.scale < target.precision - target.scale)


def _truncated(value: decimal.Decimal, bounds: tuple[int, int]) -> int | None:
    whole = int(value)
    return whole if bounds[0] <= whole <= bounds[1] else None


def _decimal_to_whole(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if column.type.scale > 0 and _is_large(column):
        return map_unique(lambda x: _truncated(x, _bounds(type_)), column, type_)
    options = pc.CastOptions(target_type=type_, allow_decimal_truncate=True)
    try:
        return pc.cast(column, options=options)
    except pa.ArrowInvalid:
        wide = column.cast(pa.decimal256(76, column.type.scale))
        low, high = (pa.scalar(decimal.Decimal(b), wide.type) for b in _bounds(type_))
        whole = pc.trunc(wide)
        fits = pc.and_(pc.greater_equal(whole, low), pc.less_equal(whole, high))
        kept = pc.if_else(fits, whole, pa.scalar(None, wide.type))
        return pc.cast(kept, options=options)


def _decimal_to_float(column: pa.Array, source: Decimal, type_: pa.DataType) -> pa.Array:
    if source.precision <= _EXACT_DIGITS and pa.types.is_float64(type_):
        words: np.ndarray[Any, Any] = np.frombuffer(column.buffers()[1], np.int64)
        low = words[2 * column.offset : 2 * (column.offset + len(column)) : 2]
        return from_raw(low / 10.0**source.scale, type_, null_mask(column))
    if pa.types.is_float64(type_):
        return map_unique(float, column, type_)
    return map_unique(nearest_float, column, type_)


def nearest_float(value: decimal.Decimal) -> float:
    """The 32-bit number nearest to a decimal, rounded once and not by way of 64 bits.

    >>> nearest_float(decimal.Decimal("16777217.0000000001"))
    16777218.0
    """
    double = float(value)
    with np.errstate(over="ignore"):
        single = np.float32(double)
    exact = decimal.Decimal(double)
    if not np.isfinite(single) or exact == value:
        return float(single)
    # Only where the double lies right between two singles can rounding twice go wrong.
    with np.errstate(over="ignore"):
        other = np.nextafter(single, np.float32(np.inf if double > float(single) else -np.inf))
    if double - float(single) != float(other) - double:
        return float(single)
    toward_other = (value > exact) == (float(other) > float(single))
    return float(other) if toward_other else float(single)
