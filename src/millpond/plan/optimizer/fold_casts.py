"""Casts of literals, where the result is beyond doubt; `fold_cast` returns None elsewhere."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from typing import TYPE_CHECKING, Any, Final

from millpond.plan.bound import BoundLiteral
from millpond.plan.scalars import fit_decimal, fits
from millpond.plan.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    is_integral,
)

if TYPE_CHECKING:
    from millpond.plan.bound import BoundCast

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WHOLE: Final = re.compile(r" *[+-]?[0-9]{1,30} *")


def fold_cast(cast: BoundCast) -> BoundLiteral | None:
    """The literal as the cast's type; None where that is an error or left to the engine.

    >>> from millpond.plan.bind import bind
    >>> from millpond.plan.expr import lit
    >>> from millpond.plan.types import LONG, Struct
    >>> [fold_cast(bind(lit(text).cast(LONG), Struct())) for text in ("42", "x")]
    [42, None]
    """
    if not isinstance(cast.arg, BoundLiteral):
        return None
    if cast.arg.value is None:
        return BoundLiteral(None, cast.type)
    found = _cast(cast.arg.value, cast.arg.type, cast.type)
    return None if found is None else BoundLiteral(found, cast.type)


def _cast(value: Any, source: DataType, target: DataType) -> Any:
    """The value, or None for "not here"."""
    if is_integral(source) or source == BOOLEAN:
        return _from_whole(value, source, target)
    if source == STRING:
        return _from_text(value, target)
    if source == DATE and target == TIMESTAMP:
        return dt.datetime.combine(value, dt.time(), dt.UTC)
    if source == DATE and target == TIMESTAMP_NTZ:
        return dt.datetime.combine(value, dt.time())
    if source in (TIMESTAMP, TIMESTAMP_NTZ) and target == DATE:
        return value.date()
    return None


def _from_whole(value: int, source: DataType, target: DataType) -> Any:
    if is_integral(target):
        return int(value) if fits(int(value), target) else None
    if target == DOUBLE:
        return float(value)
    if target == BOOLEAN:
        return value != 0
    if target == STRING:
        return str(value).lower() if source == BOOLEAN else str(value)
    return fit_decimal(decimal.Decimal(value), target) if isinstance(target, Decimal) else None


def _from_text(value: str, target: DataType) -> Any:
    if is_integral(target) and _WHOLE.fullmatch(value):
        return int(value) if fits(int(value), target) else None
    if target == DATE and _DAY.fullmatch(value):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:  # 2024-02-30 is the engine's error to report
            return None
    return None
