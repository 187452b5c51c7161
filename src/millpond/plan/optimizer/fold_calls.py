"""Functions of literals, computed while a plan is optimized, with the meaning that engines give.

What would be an error stays in the plan, and so does what only an engine can get right to the last
bit. `fold_call` returns None then.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import operator
from typing import TYPE_CHECKING, Any, Final

from millpond.plan.bound import BoundLiteral
from millpond.plan.scalars import fit_decimal, fits
from millpond.plan.types import BOOLEAN, DOUBLE, FLOAT, DataType, Decimal, is_integral

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.plan.bound import BoundCall

_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_TEXT: Final[dict[str, Callable[..., Any]]] = {
    "contains": lambda text, part: part in text,
    "starts_with": lambda text, part: text.startswith(part),
    "ends_with": lambda text, part: text.endswith(part),
    "concat": lambda *texts: "".join(texts),
    "substring": lambda text, start, length: text[start : start + length],
    "replace": lambda text, old, new: text.replace(old, new),
    "trim": lambda text: text.strip(" "),
    "length": len,
}
_CASES: Final[dict[str, Callable[[str], str]]] = {"lower": str.lower, "upper": str.upper}
_ARITHMETIC: Final[dict[str, Callable[..., Any]]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negate": operator.neg,
    "abs": abs,
}
_PARTS: Final = ("year", "month", "day", "hour", "minute", "second")
NULL_IN_NULL_OUT: Final = frozenset(
    {*_COMPARISONS, *_TEXT, *_CASES, *_ARITHMETIC, *_PARTS}
    | {"divide", "int_divide", "remainder", "like", "date_trunc", "time_bucket"}
    | {"epoch_micros", "from_epoch_micros"}
)
"""Functions whose result is null as soon as one argument is."""


def fold_call(call: BoundCall) -> BoundLiteral | None:
    """The result of a function of literals; None where it is left to the engine.

    >>> from millpond.plan.bind import bind
    >>> from millpond.plan.expr import lit
    >>> from millpond.plan.types import Struct
    >>> fold_call(bind(lit(7) % 4, Struct())), fold_call(bind(lit(7) % 0, Struct()))
    (3, None)
    """
    values = [arg.value for arg in call.args if isinstance(arg, BoundLiteral)]
    if len(values) != len(call.args) or any(arg.type == FLOAT for arg in call.args):
        return None
    if call.function in NULL_IN_NULL_OUT and None in values:
        return BoundLiteral(None, call.type)
    found = _compute(call.function, values, call.args[0].type, call.type)
    return None if found is _UNKNOWN else BoundLiteral(found, call.type)


_UNKNOWN: Final = object()


def _compute(function: str, values: list[Any], given: DataType, result: DataType) -> Any:
    if function in ("is_null", "is_not_null"):
        return (values[0] is None) == (function == "is_null")
    if function == "is_nan":
        return values[0] is not None and math.isnan(values[0])
    if function == "not":
        return None if values[0] is None else not values[0]
    if function == "eq_null_safe":
        if None in values:
            return values[0] is values[1]
        return _compare("eq", values[0], values[1])
    if function == "in":
        return _is_in(values[0], values[1:])
    if function in _COMPARISONS:
        return _compare(function, values[0], values[1])
    if function in _TEXT and all(isinstance(value, str | int) for value in values):
        return _TEXT[function](*values)
    if function in _CASES:
        # Beyond ASCII, case depends on the version of Unicode that a runtime knows.
        return _CASES[function](values[0]) if values[0].isascii() else _UNKNOWN
    if function in _PARTS:
        return getattr(values[0], function)
    if function == "epoch_micros":
        return _epoch_micros(values[0])
    return _number(function, values, given, result)


def _compare(function: str, left: Any, right: Any) -> bool:
    if isinstance(left, float):
        # NaN equals itself and is larger than everything else.
        left, right = (math.isnan(left), left), (math.isnan(right), right)
        if left[0] or right[0]:
            return _COMPARISONS[function](left[0], right[0])
    return _COMPARISONS[function](left, right)


def _is_in(value: Any, among: list[Any]) -> bool | None:
    if value is None:
        return None
    if any(item is not None and _compare("eq", value, item) for item in among):
        return True
    return None if None in among else False


def _epoch_micros(moment: dt.datetime) -> int:
    epoch = dt.datetime(1970, 1, 1, tzinfo=moment.tzinfo)
    return (moment - epoch) // dt.timedelta(microseconds=1)


def _number(function: str, values: list[Any], given: DataType, result: DataType) -> Any:
    if result == DOUBLE and function == "divide":
        return _UNKNOWN if values[1] == 0 else values[0] / values[1]
    if is_integral(result):
        whole = _whole(function, values)
        return whole if whole is not _UNKNOWN and fits(whole, result) else _UNKNOWN
    if function not in _ARITHMETIC:
        return _UNKNOWN
    if result == DOUBLE and given == DOUBLE:
        return _ARITHMETIC[function](*values)
    if isinstance(result, Decimal):
        with decimal.localcontext(prec=80):
            exact = fit_decimal(_ARITHMETIC[function](*values), result)
        return _UNKNOWN if exact is None else exact
    return _UNKNOWN


def _whole(function: str, values: list[Any]) -> Any:
    if function in _ARITHMETIC:
        return _ARITHMETIC[function](*values)
    if function not in ("int_divide", "remainder") or values[1] == 0:
        return _UNKNOWN
    quotient = abs(values[0]) // abs(values[1])
    quotient = quotient if (values[0] < 0) == (values[1] < 0) else -quotient
    return quotient if function == "int_divide" else values[0] - quotient * values[1]


TRUE: Final = BoundLiteral(True, BOOLEAN)
FALSE: Final = BoundLiteral(False, BOOLEAN)
