"""Values of the tiny engine: equality and order, ranges, rounding, and the calendar."""

from __future__ import annotations

import decimal
import math
import struct
from typing import TYPE_CHECKING, Any

from tests.engine.tiny.types import BITS

from millpond.base.errors import EvaluationError

if TYPE_CHECKING:
    from tests.engine.tiny.types import Type

SECOND = 1_000_000
DAY = 86_400 * SECOND
EXACT = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_UP)


def fail(message: str) -> EvaluationError:
    return EvaluationError(message, engine="tiny")


def ordered(value: Any) -> Any:
    """What stands for a value in comparisons: NaN equals NaN and is the largest, -0.0 is 0.0."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value


def key(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row's key: two rows with equal keys belong together."""
    return tuple(ordered(value) for value in values)


def in_range(value: int, type_: Type) -> int:
    half = 1 << (BITS[type_.kind] - 1)
    if not -half <= value < half:
        raise fail(f"{value} does not fit {type_.kind}")
    return value


def rounded(value: float, type_: Type) -> float:
    """A floating point result at the width of its type; too large becomes infinity."""
    if type_.kind == "double" or not math.isfinite(value):
        return value
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def fitted(value: decimal.Decimal, type_: Type) -> decimal.Decimal:
    """A decimal at the scale of its type, rounded half up; too many digits is an error."""
    if value.adjusted() > 40:
        raise fail(f"{value} does not fit decimal({type_.precision},{type_.scale})")
    result = EXACT.quantize(value, decimal.Decimal(1).scaleb(-type_.scale))
    if len(result.as_tuple().digits) > type_.precision:
        raise fail(f"{value} does not fit decimal({type_.precision},{type_.scale})")
    return abs(result) if result.is_zero() else result


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day since 1970, in the calendar that has no beginning."""
    days += 719_468
    era, day_of_era = divmod(days, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day


def days_from(year: int, month: int, day: int) -> int:
    """The inverse of `civil`."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return (
        era * 146_097
        + year_of_era * 365
        + year_of_era // 4
        - year_of_era // 100
        + (day_of_year - 719_468)
    )


def hashed(seed: int, position: int) -> int:
    """Spark's xxhash64(seed, position), as a signed number."""
    result = _hash(position, _hash(seed, 42))
    return result - (1 << 64) if result >> 63 else result


_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _hash(value: int, seed: int) -> int:
    h = (seed + _P5 + 8) & _MASK
    h ^= _rotate((value & _MASK) * _P2, 31) * _P1 & _MASK
    h = (_rotate(h, 27) * _P1 + _P4) & _MASK
    h = (h ^ h >> 33) * _P2 & _MASK
    h = (h ^ h >> 29) * _P3 & _MASK
    return h ^ h >> 32


def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (64 - bits)) & _MASK
