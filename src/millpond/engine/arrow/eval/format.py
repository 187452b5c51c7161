"""Values as text: numbers in plain digits, floating point as Java writes it, dates as ISO 8601.

The common ranges go through Arrow; what Arrow writes otherwise (exponents, far years, bytes that
are not UTF-8) is written once for each different value.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.dates import DAY, SECOND
from millpond.engine.arrow.eval.values import all_true, map_unique, raw
from millpond.plan.types import BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, Decimal, is_fractional

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.plan.types import DataType

_FIRST_DAY: Final = -719_162
"""0001-01-01, counted from 1970."""
_LAST_DAY: Final = 2_932_896
"""9999-12-31, counted from 1970."""
_PLAIN_SCALE: Final = 6
"""Up to this scale Arrow never writes a decimal with an exponent."""


def to_text(column: pa.Array, source: DataType) -> pa.Array:
    """A column of scalars as strings."""
    if is_fractional(source):
        return _floats(column)
    if isinstance(source, Decimal) and source.scale > _PLAIN_SCALE:
        return map_unique(lambda value: f"{value:f}", column, pa.string())
    if source == BINARY:
        return _utf8(column)
    if source == DATE:
        return _dates(column)
    if source in (TIMESTAMP, TIMESTAMP_NTZ):
        return _timestamps(column)
    return column.cast(pa.string())


def _floats(column: pa.Array) -> pa.Array:
    """Arrow's shortest digits where Java writes no exponent, Java's form for the rest."""
    numbers = np.abs(raw(column))
    with np.errstate(invalid="ignore"):
        plain = ((numbers >= 1e-3) & (numbers < 1e7)) | (numbers == 0)
    text = column.cast(pa.string())
    whole = pc.binary_join_element_wise(text, ".0", "")
    text = pc.if_else(pc.match_substring(text, "."), text, whole)
    if plain.all():
        return text
    single = pa.types.is_float32(column.type)
    odd = pa.array(~plain)
    exact = map_unique(java_float if single else java_double, column.filter(odd), pa.string())
    return pc.replace_with_mask(text, odd, exact)


def java_double(value: float) -> str:
    """A 64-bit number as Java writes it.

    >>> [java_double(x) for x in (1e10, 1.5e-7, -0.0, 123.0, float("nan"), float("-inf"))]
    ['1.0E10', '1.5E-7', '-0.0', '123.0', 'NaN', '-Infinity']
    """
    return _java(value, float, repr)


def java_float(value: float) -> str:
    """A 32-bit number as Java writes it."""
    return _java(value, np.float32, lambda x: str(np.float32(x)))


def _java(value: float, of_width: Callable[[str], object], shortest: Callable[[float], str]) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    two_digits = f"{value:.1e}"
    # Java writes two digits at least, and of those the nearest: 4.9E-324, not 5.0E-324.
    text = two_digits if of_width(two_digits) == value else shortest(value)
    sign, digits, exponent = decimal.Decimal(text).normalize().as_tuple()
    assert isinstance(exponent, int)
    minus, text = "-" if sign else "", "".join(map(str, digits))
    point = len(text) + exponent
    if text == "0":
        return f"{minus}0.0"
    if -3 < point <= 7:
        text = "0" * (1 - point) + text if point <= 0 else text.ljust(point, "0")
        point = max(point, 1)
        return f"{minus}{text[:point]}.{text[point:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def _utf8(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return map_unique(lambda value: value.decode("utf-8", "replace"), column, pa.string())


def _dates(column: pa.Array) -> pa.Array:
    if _within(column.view(pa.int32()), _FIRST_DAY, _LAST_DAY):
        return column.cast(pa.string())
    return map_unique(iso_day, column.view(pa.int32()), pa.string())


def _timestamps(column: pa.Array) -> pa.Array:
    micros = column.view(pa.int64())
    if _within(micros, _FIRST_DAY * DAY, (_LAST_DAY + 1) * DAY - 1):
        text = column.view(pa.timestamp("us")).cast(pa.string())
        return pc.replace_substring_regex(text, r"\.?0{1,6}$", "")
    return map_unique(iso_moment, micros, pa.string())


def _within(numbers: pa.Array, low: int, high: int) -> bool:
    low_end = pc.greater_equal(numbers, pa.scalar(low, numbers.type))
    return all_true(pc.and_(low_end, pc.less_equal(numbers, pa.scalar(high, numbers.type))))


def iso_day(days: int) -> str:
    """A day as text, also outside the years 1 to 9999.

    >>> iso_day(0), iso_day(3652060), iso_day(-719529)
    ('1970-01-01', '+11969-01-01', '-0001-12-31')
    """
    text = str(np.datetime64(days, "D"))
    year, rest = int(text[:-6]), text[-6:]
    return f"{year:04}{rest}" if 0 <= year <= 9999 else f"{year:+05}{rest}"


def iso_moment(micros: int) -> str:
    """A timestamp as text, without trailing zeros."""
    day, rest = divmod(micros, DAY)
    seconds, fraction = divmod(rest, SECOND)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    tail = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{iso_day(day)} {clock}{tail}"
