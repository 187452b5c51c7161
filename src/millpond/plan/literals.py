"""Python values as typed literals, and literals made to fit the column that they meet.

>>> literal(3)
3
>>> print(literal(3).type, adapt(literal(3), INTEGER).type, adapt(literal(2**40), INTEGER).type)
long integer long
"""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

from millpond.base.errors import TypeMismatchError
from millpond.plan.bound import BoundLiteral
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    NULL,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    is_fractional,
    is_integral,
)

_BITS = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}


def literal(value: Any, type_: DataType | None = None) -> BoundLiteral:
    """A constant of the type that the Python value has by nature, or of the given type."""
    if type_ is not None:
        return _typed(value, type_)
    if value is None:
        return BoundLiteral(None, NULL)
    if isinstance(value, bool):
        return BoundLiteral(value, BOOLEAN)
    if isinstance(value, int):
        if fits(value, LONG):
            return BoundLiteral(value, LONG)
        return _decimal(decimal.Decimal(value))
    if isinstance(value, float):
        return BoundLiteral(value, DOUBLE)
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, str):
        return BoundLiteral(value, STRING)
    if isinstance(value, bytes | bytearray | memoryview):
        return BoundLiteral(bytes(value), BINARY)
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            return BoundLiteral(value, TIMESTAMP_NTZ)
        return BoundLiteral(value.astimezone(dt.UTC), TIMESTAMP)
    if isinstance(value, dt.date):
        return BoundLiteral(value, DATE)
    raise TypeMismatchError(
        f"{type(value).__name__} can't be a literal",
        hint="use None, bool, int, float, Decimal, str, bytes, date or datetime",
    )


def fits(value: int, type_: DataType) -> bool:
    """Whether an integer lies in the range of an integer type."""
    bits = _BITS[type_]  # type: ignore[index]
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def adapt(item: BoundLiteral, type_: DataType) -> BoundLiteral:
    """The literal as this type where that changes nothing about its value, else as it is.

    Whole numbers take any numeric type that holds them; text that reads as a date or a timestamp
    takes that type; a null takes every type.
    """
    value = item.value
    if value is None:
        return BoundLiteral(None, type_)
    if isinstance(value, int) and not isinstance(value, bool):
        if is_integral(type_) and fits(value, type_):
            return BoundLiteral(value, type_)
        if is_fractional(type_) and item.type == LONG:
            return BoundLiteral(float(value), type_ if abs(value) < 1 << 24 else DOUBLE)
        if isinstance(type_, Decimal) and item.type == LONG:
            return _decimal(decimal.Decimal(value))
    if isinstance(value, str) and type_ in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return _typed(value, type_)
    if item.type == TIMESTAMP_NTZ and type_ == TIMESTAMP:
        return BoundLiteral(value.replace(tzinfo=dt.UTC), TIMESTAMP)
    return item


def _decimal(value: decimal.Decimal) -> BoundLiteral:
    if not value.is_finite():
        raise TypeMismatchError(f"{value} is not a decimal number")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > 38:
        raise TypeMismatchError(f"{value} has more than 38 digits", hint="use a float")
    return BoundLiteral(value, Decimal(precision, scale))


def _typed(value: Any, type_: DataType) -> BoundLiteral:
    if value is None:
        return BoundLiteral(None, type_)
    if isinstance(value, str) and type_ in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return BoundLiteral(_read_time(value, type_), type_)
    natural = literal(value)
    if natural.type == type_:
        return natural
    if isinstance(type_, Decimal) and isinstance(value, int | decimal.Decimal):
        return BoundLiteral(_fit_decimal(decimal.Decimal(value), type_), type_)
    if is_fractional(type_) and isinstance(value, int | float) and not isinstance(value, bool):
        return BoundLiteral(float(value), type_)
    adapted = adapt(natural, type_)
    if adapted.type != type_:
        raise TypeMismatchError(f"{value!r} is not a {type_}")
    return adapted


def _fit_decimal(value: decimal.Decimal, type_: Decimal) -> decimal.Decimal:
    with decimal.localcontext(prec=80):
        fitted = value.quantize(decimal.Decimal(1).scaleb(-type_.scale))
    if fitted != value or len(fitted.as_tuple().digits) > type_.precision:
        raise TypeMismatchError(f"{value} does not fit {type_}")
    return fitted


def _read_time(text: str, type_: DataType) -> dt.date:
    try:
        if type_ == DATE:
            return dt.date.fromisoformat(text)
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise TypeMismatchError(
            f"{text!r} is not a {type_}", hint="write ISO 8601: 2024-05-31 or 2024-05-31T12:00:00Z"
        ) from error
    if type_ == TIMESTAMP_NTZ:
        if moment.tzinfo is not None:
            raise TypeMismatchError(f"{text!r} has a zone, {type_} has none")
        return moment
    return moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
