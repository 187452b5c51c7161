"""Which Python value stands for a value of which type: what a literal may hold.

One value, one form: decimals carry the scale of their type, timestamps are in UTC, floats are
rounded to their width. So equal literals have equal digests, and engines need not look twice.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
from typing import Any

from millpond.base.errors import TypeMismatchError
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    is_integral,
    require_text,
)

_BITS = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}
_CLASSES: dict[DataType, type] = {
    BOOLEAN: bool,
    **dict.fromkeys(_BITS, int),
    FLOAT: float,
    DOUBLE: float,
    STRING: str,
    BINARY: bytes,
    DATE: dt.date,
    TIMESTAMP: dt.datetime,
    TIMESTAMP_NTZ: dt.datetime,
}


def require_value(value: Any, type_: DataType) -> None:
    """Refuse what is neither None nor a value of this type in its one form."""
    if value is None:
        return
    if isinstance(type_, Decimal):
        fine = type(value) is decimal.Decimal and fit_decimal(value, type_) is not None
        fine = fine and value.as_tuple().exponent == -type_.scale
    else:
        fine = type(value) is _CLASSES.get(type_) and _is_in_range(value, type_)
    if not fine:
        raise TypeMismatchError(f"{value!r} is not a {type_}")


def _is_in_range(value: Any, type_: DataType) -> bool:
    if is_integral(type_):
        return fits(value, type_)
    if type_ == STRING:
        if not value.isascii():
            require_text(value, "a text")
    elif type_ == FLOAT:
        return to_float32(value) is not None
    elif type_ == TIMESTAMP:
        return bool(value.utcoffset() == dt.timedelta(0))
    elif type_ == TIMESTAMP_NTZ:
        return bool(value.tzinfo is None)
    return True


def fits(value: int, type_: DataType) -> bool:
    """Whether an integer lies in the range of an integer type."""
    bits = _BITS[type_]  # type: ignore[index]
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def to_float32(value: float) -> float | None:
    """The number if 32 bits hold it exactly, else None."""
    if not math.isfinite(value):
        return value
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return None
    return value if rounded == value else None


def fit_decimal(value: decimal.Decimal, type_: Decimal) -> decimal.Decimal | None:
    """The number with the scale of this type if the type holds it exactly, else None."""
    if not value.is_finite() or value.adjusted() >= 38:
        return None
    with decimal.localcontext(prec=80):
        fitted = value.quantize(decimal.Decimal(1).scaleb(-type_.scale))
    if fitted != value or len(fitted.as_tuple().digits) > type_.precision:
        return None
    return abs(fitted) if fitted.is_zero() else fitted
