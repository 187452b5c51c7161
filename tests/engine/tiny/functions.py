"""Functions of the tiny engine by name: `f(type_, *values)`, the result's type first."""

from __future__ import annotations

import decimal
import math
import operator
import re
from typing import TYPE_CHECKING, Any

from tests.engine.tiny.types import BITS
from tests.engine.tiny.values import (
    DAY,
    EXACT,
    SECOND,
    civil,
    days_from,
    fail,
    fitted,
    in_range,
    ordered,
    rounded,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.engine.tiny.types import Type


def _and(_: Type, *values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def _or(_: Type, *values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def _in(_: Type, value: Any, *options: Any) -> bool | None:
    if value is None:
        return None
    if any(o is not None and ordered(o) == ordered(value) for o in options):
        return True
    return None if None in options else False


def _same(_: Type, a: Any, b: Any) -> bool:
    return (a is None) == (b is None) and ordered(a) == ordered(b)


def _number(type_: Type, value: Any) -> Any:
    if type_.kind in BITS:
        return in_range(value, type_)
    return fitted(value, type_) if type_.kind == "decimal" else rounded(value, type_)


def _divide(_: Type, a: float, b: float) -> float:
    if b == 0:
        raise fail("division by zero")
    return a / b


def _int_divide(type_: Type, a: int, b: int) -> int:
    if b == 0:
        raise fail("division by zero")
    return in_range(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), type_)


def _remainder(_: Type, a: int, b: int) -> int:
    if b == 0:
        raise fail("division by zero")
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def _arithmetic(
    plain: Callable[[Any, Any], Any], exact: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    def compute(type_: Type, a: Any, b: Any) -> Any:
        return _number(type_, (exact if isinstance(a, decimal.Decimal) else plain)(a, b))

    return compute


def _like(_: Type, text: str, pattern: str) -> bool:
    parts = re.findall(r"\\.|%|_|[^\\%_]+|\\", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    regex = "".join(wild.get(p) or re.escape(p[1:] if p[0] == "\\" else p) for p in parts)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _part(index: int) -> Callable[..., int]:
    def compute(_: Type, value: int) -> int:
        if index < 3:
            # A date is in days, a timestamp in microseconds: the argument's type says which.
            return civil(value)[index]
        return value % DAY // SECOND // (3600, 60, 1)[index - 3] % (24, 60, 60)[index - 3]

    return compute


def _date_trunc(_: Type, micros: int, unit: str) -> int:
    days = micros // DAY
    year, month, _day = civil(days)
    if unit in ("day", "hour", "minute", "second"):
        width = {"day": DAY, "hour": 3600 * SECOND, "minute": 60 * SECOND, "second": SECOND}[unit]
        return micros - micros % width
    if unit == "week":
        return (days - (days + 3) % 7) * DAY
    first = {"year": 1, "quarter": (month - 1) // 3 * 3 + 1, "month": month}[unit]
    return days_from(year, first, 1) * DAY


def _comparison(test: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    return lambda _, a, b: test(ordered(a), ordered(b))


STRICT: dict[str, Callable[..., Any]] = {
    "eq": _comparison(operator.eq),
    "ne": _comparison(operator.ne),
    "lt": _comparison(operator.lt),
    "le": _comparison(operator.le),
    "gt": _comparison(operator.gt),
    "ge": _comparison(operator.ge),
    "not": lambda _, a: not a,
    "add": _arithmetic(operator.add, EXACT.add),
    "subtract": _arithmetic(operator.sub, EXACT.subtract),
    "multiply": _arithmetic(operator.mul, EXACT.multiply),
    "divide": _divide,
    "int_divide": _int_divide,
    "remainder": _remainder,
    "negate": lambda type_, a: _number(type_, -a),
    "abs": lambda type_, a: _number(type_, abs(a)),
    "lower": lambda _, a: a.lower(),
    "upper": lambda _, a: a.upper(),
    "trim": lambda _, a: a.strip(" "),
    "contains": lambda _, a, b: b in a,
    "starts_with": lambda _, a, b: a.startswith(b),
    "ends_with": lambda _, a, b: a.endswith(b),
    "like": _like,
    "replace": lambda _, a, old, new: a.replace(old, new),
    "concat": lambda _, *parts: "".join(parts),
    "substring": lambda _, a, start, length: a[start : start + length],
    "length": lambda _, a: len(a),
    **{name: _part(at) for at, name in enumerate(("year", "month", "day"))},
    **{name: _part(at) for at, name in enumerate(("hour", "minute", "second"), start=3)},
    "date_trunc": _date_trunc,
    "time_bucket": lambda _, micros, width: micros - micros % width,
    "epoch_micros": lambda _, a: a,
    "from_epoch_micros": lambda _, a: a,
}
"""Null when one of the arguments is."""

OTHERS: dict[str, Callable[..., Any]] = {
    "eq_null_safe": _same,
    "in": _in,
    "and": _and,
    "or": _or,
    "is_null": lambda _, a: a is None,
    "is_not_null": lambda _, a: a is not None,
    "is_nan": lambda _, a: a is not None and math.isnan(a),
    "coalesce": lambda _, *values: next((v for v in values if v is not None), None),
    "if_else": lambda _, condition, a, b: a if condition else b,
}
"""They see nulls themselves."""
