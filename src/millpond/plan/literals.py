"""Python values as typed literals, and literals made to fit the column that they meet.

>>> from millpond.plan.types import INTEGER
>>> literal(3)
3
>>> print(literal(3).type, adapt(literal(3), INTEGER).type, adapt(literal(2**40), INTEGER).type)
long integer long
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import struct
from typing import Any

from millpond.base.errors import TypeMismatchError
from millpond.plan.bound import BoundLiteral
from millpond.plan.scalars import fit_decimal, to_float32
from millpond.plan.scalars import fits as fits
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    is_fractional,
    is_integral,
)

_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?P<time>[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(?P<zone>Z|[+-]\d\d:\d\d)?)?"
)


def literal(value: Any, type_: DataType | None = None) -> BoundLiteral:
    """A constant of the type that the Python value has by nature, or of the given type."""
    if type_ is not None:
        return _typed(value, type_)
    if value is None:
        return BoundLiteral(None, NULL)
    if isinstance(value, bool):
        return BoundLiteral(value, BOOLEAN)
    if isinstance(value, int):
        whole = int(value)  # an IntEnum becomes a plain number
        return BoundLiteral(whole, LONG) if fits(whole, LONG) else _decimal(decimal.Decimal(whole))
    if isinstance(value, float):
        return BoundLiteral(float(value), DOUBLE)
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, str):
        return BoundLiteral(str.__str__(value), STRING)
    if isinstance(value, bytes | bytearray | memoryview):
        return BoundLiteral(bytes(value), BINARY)
    if isinstance(value, dt.datetime):
        return _datetime(value)
    if isinstance(value, dt.date):
        return BoundLiteral(dt.date(value.year, value.month, value.day), DATE)
    raise TypeMismatchError(
        f"{type(value).__name__} can't be a literal",
        hint="use None, bool, int, float, Decimal, str, bytes, date or datetime",
    )


def adapt(item: BoundLiteral, type_: DataType) -> BoundLiteral:
    """The literal as the type of the column that it meets, where its value allows, else as it is.

    Whole numbers take any numeric type that holds them (a decimal column leaves them as narrow as
    they are); text that reads as a date or a timestamp takes that type; a naive datetime that
    meets a timestamp is in UTC; a null takes every type.
    """
    value = item.value
    if value is None:
        return BoundLiteral(None, type_)
    if is_integral(item.type):
        if is_integral(type_) and fits(value, type_):
            return BoundLiteral(value, type_)
        if is_fractional(type_):
            return BoundLiteral(float(value), type_ if abs(value) <= 1 << 24 else DOUBLE)
        if isinstance(type_, Decimal):
            return _decimal(decimal.Decimal(value))
    if isinstance(value, str) and type_ in _TIMES:
        return BoundLiteral(_read_time(value, type_), type_)
    if item.type == TIMESTAMP_NTZ and type_ == TIMESTAMP:
        return BoundLiteral(value.replace(tzinfo=dt.UTC), TIMESTAMP)
    return item


def fold(item: BoundLiteral, to: DataType) -> BoundLiteral | None:
    """The literal cast to a type, where that can't fail and every engine gives the same; or None.

    Casts from and to text are left to the engine.
    """
    value: Any = item.value
    if value is None:
        return BoundLiteral(None, to)
    if isinstance(value, int | decimal.Decimal) and not isinstance(value, bool):
        return _fold_exact(value, to)
    if isinstance(value, float) and is_fractional(to):
        return BoundLiteral(value, to) if to == DOUBLE or to_float32(value) is not None else None
    if item.type == DATE and to in (TIMESTAMP, TIMESTAMP_NTZ):
        zone = dt.UTC if to == TIMESTAMP else None
        return BoundLiteral(dt.datetime(value.year, value.month, value.day, tzinfo=zone), to)
    return None


def _fold_exact(value: int | decimal.Decimal, to: DataType) -> BoundLiteral | None:
    if to == DOUBLE:
        return BoundLiteral(float(value), DOUBLE)
    if isinstance(to, Decimal):
        fitted = fit_decimal(decimal.Decimal(value), to)
        return None if fitted is None else BoundLiteral(fitted, to)
    if isinstance(value, int):
        if is_integral(to) and fits(value, to):
            return BoundLiteral(value, to)
        if to == FLOAT and abs(value) <= 1 << 24:
            return BoundLiteral(float(value), FLOAT)
    return None


def _typed(value: Any, type_: DataType) -> BoundLiteral:
    if isinstance(value, float) and type_ == FLOAT:
        return BoundLiteral(_nearest_float32(float(value)), FLOAT)
    item = literal(value)
    found = adapt(item, type_)
    if found.type != type_:
        found = fold(item, type_) or item
    if found.type != type_:
        raise TypeMismatchError(f"{value!r} is not a {type_}")
    return found


def _nearest_float32(value: float) -> float:
    if to_float32(value) is not None:
        return value
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError as error:
        raise TypeMismatchError(f"{value!r} is not a float", hint="use a double") from error
    return float(rounded)


def _decimal(value: decimal.Decimal) -> BoundLiteral:
    if not value.is_finite():
        raise TypeMismatchError(f"{value} is not a decimal number")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > 38:
        raise TypeMismatchError(f"{value} has more than 38 digits", hint="use a float")
    type_ = Decimal(precision, scale)
    return BoundLiteral(fit_decimal(value, type_), type_)


def _datetime(value: dt.datetime) -> BoundLiteral:
    if getattr(value, "nanosecond", 0) or value.year != value.year:
        raise TypeMismatchError(
            f"{value!r} can't be a literal", hint="timestamps are whole microseconds; null is None"
        )
    plain = dt.datetime(
        *(value.year, value.month, value.day, value.hour, value.minute, value.second),
        value.microsecond,
        tzinfo=value.tzinfo,
        fold=value.fold,
    )
    if plain.tzinfo is None:
        return BoundLiteral(plain, TIMESTAMP_NTZ)
    return BoundLiteral(_in_utc(plain), TIMESTAMP)


def _in_utc(moment: dt.datetime) -> dt.datetime:
    try:
        return moment.astimezone(dt.UTC)
    except OverflowError as error:
        raise TypeMismatchError(f"{moment} lies outside of the years 1 to 9999 in UTC") from error


def _read_time(text: str, type_: DataType) -> dt.date:
    match = _ISO.fullmatch(text)
    try:
        if match is None or (type_ == DATE and match["time"]):
            raise ValueError(text)
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
    return _in_utc(moment) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
