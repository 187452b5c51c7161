"""docs/expressions.md, row by row in plain Python: what the real evaluator is checked against.

Rows are dicts. Dates are days and timestamps microseconds since 1970, as integers, so that values
outside Python's calendar can be spoken of. `BadValueError` is what the page calls an error.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from typing import Any

import numpy as np

from millpond.plan.bound import (
    BoundCall,
    BoundCast,
    BoundExpr,
    BoundLiteral,
    BoundPath,
    BoundQuantifier,
)
from millpond.plan.paths import Each, Index, Name
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    FLOAT,
    INTEGER,
    LONG,
    NULL,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    is_fractional,
    is_integral,
)

DAY = 86_400_000_000
BITS = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
WIDE = decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP)


class BadValueError(Exception):
    """The value of this row is an error."""


def run(expr: BoundExpr, row: Any) -> Any:
    """The value of an expression for a row, or for a list's element."""
    if isinstance(expr, BoundLiteral):
        return as_number(expr.value)
    if isinstance(expr, BoundPath):
        return follow(row, expr.steps)
    if isinstance(expr, BoundCast):
        return cast(run(expr.arg, row), expr.arg.type, expr.type, expr.on_error)
    if isinstance(expr, BoundQuantifier):
        return quantify(expr, row)
    assert isinstance(expr, BoundCall)
    if expr.function in LAZY:
        return LAZY[expr.function](expr.args, row)
    args = [run(arg, row) for arg in expr.args]
    if expr.function in NULL_SAFE:
        return NULL_SAFE[expr.function](*args)
    if None in args:
        return None
    if expr.function in ("year", "month", "day"):
        return part_of(expr.function, args[0], expr.args[0].type)
    return fit(STRICT[expr.function](*args), expr.type)


def as_number(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (aware - EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - EPOCH.date()).days
    return value


def fit(value: Any, type_: DataType) -> Any:
    """Overflow at the width of the result; 32-bit numbers are rounded after every step."""
    if type_ in BITS:
        half = 1 << (BITS[type_] - 1)
        if not -half <= value < half:
            raise BadValueError
    if type_ in (TIMESTAMP, TIMESTAMP_NTZ) and not -(1 << 63) <= value < 1 << 63:
        raise BadValueError
    if isinstance(value, decimal.Decimal) and value == 0:
        return value.copy_abs()  # Python knows a negative zero, decimals do not
    return single(value) if type_ == FLOAT else value


def single(value: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float32(value))


def follow(value: Any, steps: Any) -> Any:
    for at, step in enumerate(steps):
        if value is None:
            return None
        if isinstance(step, Name):
            if isinstance(value, list):  # a map, as pairs
                value = next((item for key, item in value if key == step.name), None)
            else:
                value = value[step.name]
        elif isinstance(step, Index):
            there = -len(value) <= step.index < len(value)
            value = value[step.index] if there else None
        else:
            assert isinstance(step, Each)
            return [follow(item, steps[at + 1 :]) for item in value]
    return value


def quantify(expr: BoundQuantifier, row: Any) -> Any:
    items = run(expr.list, row)
    if items is None:
        return None
    decides = expr.kind == "any"
    unknown = False
    for item in items:
        found = run(expr.predicate, item)
        if found is decides:
            return decides
        unknown = unknown or found is None
    return None if unknown else not decides


def run_and(args: Any, row: Any) -> Any:
    result: Any = True
    for arg in args:
        value = run(arg, row)
        if value is False:
            return False
        result = None if value is None else result
    return result


def run_or(args: Any, row: Any) -> Any:
    result: Any = False
    for arg in args:
        value = run(arg, row)
        if value is True:
            return True
        result = None if value is None else result
    return result


def run_if(args: Any, row: Any) -> Any:
    return run(args[1] if run(args[0], row) is True else args[2], row)


def run_coalesce(args: Any, row: Any) -> Any:
    return next((value for arg in args if (value := run(arg, row)) is not None), None)


LAZY: dict[str, Any] = {
    "and": run_and,
    "or": run_or,
    "if_else": run_if,
    "coalesce": run_coalesce,
}


def key(value: Any) -> Any:
    """A value's place in the total order: NaN last, strings by code point."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def is_in(value: Any, *choices: Any) -> Any:
    if not choices:
        return False
    if value is None:
        return None
    if any(choice is not None and key(choice) == key(value) for choice in choices):
        return True
    return None if None in choices else False


def same(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    return bool(key(left) == key(right))


NULL_SAFE: dict[str, Any] = {
    "eq_null_safe": same,
    "in": is_in,
    "is_null": lambda x: x is None,
    "is_not_null": lambda x: x is not None,
    "is_nan": lambda x: x is not None and math.isnan(x),
}


def plus(left: Any, right: Any) -> Any:
    return WIDE.add(left, right) if isinstance(left, decimal.Decimal) else left + right


def minus(left: Any, right: Any) -> Any:
    return WIDE.subtract(left, right) if isinstance(left, decimal.Decimal) else left - right


def times(left: Any, right: Any) -> Any:
    return WIDE.multiply(left, right) if isinstance(left, decimal.Decimal) else left * right


def divide(left: float, right: float) -> float:
    if right == 0:
        raise BadValueError
    return left / right


def int_divide(left: int, right: int) -> int:
    if right == 0:
        raise BadValueError
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


def remainder(left: int, right: int) -> int:
    return left - int_divide(left, right) * right


def negate(value: Any) -> Any:
    return value.copy_negate() if isinstance(value, decimal.Decimal) else -value


def like(text: str, pattern: str) -> bool:
    out, escaped = [], False
    for char in pattern:
        if escaped:
            out.append(re.escape(char))
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            out.append({"%": ".*", "_": "."}.get(char, re.escape(char)))
    return re.fullmatch("".join(out), text, re.DOTALL) is not None


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day; the calendar repeats every 400 years."""
    cycles, rest = divmod(days + 719_162, 146_097)
    date = dt.date.fromordinal(rest + 1)
    return date.year + cycles * 400, date.month, date.day


def days_of(year: int, month: int, day: int) -> int:
    cycles, rest = divmod(year - 1, 400)
    return dt.date(rest + 1, month, day).toordinal() - 719_163 + cycles * 146_097


def date_trunc(micros: int, unit: str) -> int:
    widths = {"second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": DAY}
    if unit in widths:
        return micros // widths[unit] * widths[unit]
    days = micros // DAY
    if unit == "week":
        return (days - (days + 3) % 7) * DAY
    year, month, _ = civil(days)
    first = {"year": 1, "quarter": (month - 1) // 3 * 3 + 1, "month": month}[unit]
    return days_of(year, first, 1) * DAY


STRICT: dict[str, Any] = {
    "eq": lambda a, b: key(a) == key(b),
    "ne": lambda a, b: key(a) != key(b),
    "lt": lambda a, b: key(a) < key(b),
    "le": lambda a, b: key(a) <= key(b),
    "gt": lambda a, b: key(a) > key(b),
    "ge": lambda a, b: key(a) >= key(b),
    "not": lambda a: not a,
    "add": plus,
    "subtract": minus,
    "multiply": times,
    "divide": divide,
    "int_divide": int_divide,
    "remainder": remainder,
    "negate": negate,
    "abs": lambda a: a.copy_abs() if isinstance(a, decimal.Decimal) else abs(a),
    "lower": str.lower,
    "upper": str.upper,
    "trim": lambda s: s.strip(" "),
    "contains": lambda s, part: part in s,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "like": like,
    "replace": str.replace,
    "concat": lambda *parts: "".join(parts),
    "substring": lambda s, start, length: s[start : start + length],
    "length": len,
    "epoch_micros": lambda t: t,
    "from_epoch_micros": lambda t: t,
    "hour": lambda t: t // 3_600_000_000 % 24,
    "minute": lambda t: t // 60_000_000 % 60,
    "second": lambda t: t // 1_000_000 % 60,
    "date_trunc": date_trunc,
    "time_bucket": lambda t, width: t // width * width,
}


def part_of(name: str, at: int, type_: DataType) -> int:
    days = at if type_ == DATE else at // DAY
    return civil(days)[("year", "month", "day").index(name)]


def cast(value: Any, source: DataType, target: DataType, on_error: str) -> Any:
    if value is None:
        return None
    if isinstance(source, List) and isinstance(target, List):
        return [cast(item, source.element, target.element, on_error) for item in value]
    try:
        return cast_one(value, source, target)
    except BadValueError:
        if on_error == "null":
            return None
        raise


def cast_one(value: Any, source: DataType, target: DataType) -> Any:
    if source in (target, NULL):
        return value
    if target == STRING:
        return to_text(value, source)
    if source == STRING:
        return value.encode() if target == BINARY else from_text(value, target)
    if target == DATE:
        return value // DAY
    if target in (TIMESTAMP, TIMESTAMP_NTZ):
        return fit(value * DAY, target) if source == DATE else value
    if target == BOOLEAN:
        return value != 0
    if isinstance(target, Decimal):
        if isinstance(value, float):
            value = decimal.Decimal(repr(value))
        return to_decimal(decimal.Decimal(value), target)
    if is_fractional(target):
        return nearest(value, target)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadValueError
    return fit(int(value), target)


def nearest(value: Any, target: DataType) -> float:
    if target == FLOAT and isinstance(value, decimal.Decimal):
        low = single(float(value))
        near = [low, single(np.nextafter(np.float32(low), np.float32(math.inf)))]
        near.append(single(np.nextafter(np.float32(low), np.float32(-math.inf))))
        return min(near, key=lambda x: (abs(decimal.Decimal(x) - value), _is_odd(x)))
    if target == FLOAT and isinstance(value, int):
        return float(np.int64(value).astype(np.float32))
    return fit(float(value), target)  # type: ignore[no-any-return]


def _is_odd(value: float) -> int:
    return int(np.float32(value).view(np.int32)) & 1


def to_decimal(value: decimal.Decimal, target: Decimal) -> decimal.Decimal:
    if not value.is_finite() or value.adjusted() > 60:
        raise BadValueError
    fitted = value.quantize(decimal.Decimal(1).scaleb(-target.scale), context=WIDE)
    if len(fitted.as_tuple().digits) > target.precision:
        raise BadValueError
    return fitted.copy_abs() if fitted == 0 else fitted


def to_text(value: Any, source: DataType) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float):
        return float_text(value, source)
    if source == DATE:
        return date_text(value)
    if source in (TIMESTAMP, TIMESTAMP_NTZ):
        return time_text(value)
    return f"{value:f}" if isinstance(value, decimal.Decimal) else str(value)


def float_text(value: float, source: DataType) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    shortest = f"{decimal.Decimal(str(np.float32(value)) if source == FLOAT else repr(value)):f}"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return shortest if "." in shortest else f"{shortest}.0"
    mantissa, exponent = f"{decimal.Decimal(shortest).normalize():e}".split("e")
    if "." not in mantissa:  # two digits at least
        mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def date_text(days: int) -> str:
    year, month, day = civil(days)
    shown = f"{year:04}" if 0 <= year <= 9999 else f"{year:+05}"
    return f"{shown}-{month:02}-{day:02}"


def time_text(micros: int) -> str:
    days, rest = divmod(micros, DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"
    return f"{date_text(days)} {text.rstrip('0').rstrip('.')}"


def from_text(text: str, target: DataType) -> Any:
    text = text.strip("".join(map(chr, range(33))) + "\x7f")
    if target == BOOLEAN:
        if text.lower() in ("true", "t", "yes", "y", "1"):
            return True
        if text.lower() in ("false", "f", "no", "n", "0"):
            return False
        raise BadValueError
    if target in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return read_time(text, target)
    if is_integral(target):
        if not re.fullmatch("[+-]?[0-9]+", text):
            raise BadValueError
        return fit(int(text), target)
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        exact = decimal.Decimal(text)
        return to_decimal(exact, target) if isinstance(target, Decimal) else nearest(exact, target)
    if isinstance(target, Decimal) or not re.fullmatch("nan|[+-]?inf(inity)?", text.lower()):
        raise BadValueError
    return float(text)


def read_time(text: str, target: DataType) -> int:
    if not re.fullmatch(
        r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?", text, re.ASCII
    ):
        raise BadValueError
    text = re.sub(r"(\.\d{6})\d+", r"\1", text)
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise BadValueError from None
    if target == DATE:
        return (moment.date() - EPOCH.date()).days
    if moment.tzinfo is None or target == TIMESTAMP_NTZ:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - EPOCH) // dt.timedelta(microseconds=1)
