"""Casts of the tiny engine, as docs/expressions.md says them."""

from __future__ import annotations

import decimal
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
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
    rounded,
)

from millpond.base.errors import EvaluationError

if TYPE_CHECKING:
    from tests.engine.tiny.types import Type

_AROUND = "".join(map(chr, range(0x21))) + "\x7f"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:Z|([+-])(\d\d):(\d\d))?)?",
    re.ASCII,
)
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


def cast(value: Any, source: Type, target: Type, *, null_on_error: bool) -> Any:
    """A value as another type."""
    if value is None:
        return None
    if source.kind == "list" and target.kind == "list":
        inner = (source.element, target.element)
        return [cast(item, *inner, null_on_error=null_on_error) for item in value]
    try:
        return _cast(value, source, target)
    except EvaluationError:
        if null_on_error:
            return None
        raise


def _cast(value: Any, source: Type, target: Type) -> Any:
    if source == target:
        return value
    if target.kind == "string":
        return _to_text(value, source)
    if source.kind == "string":
        return _from_text(value, target)
    if target.kind == "boolean":
        return value != 0
    if source.kind == "date":
        return _as_long(value * DAY)
    if target.kind == "date":
        return value // DAY
    if target.kind in ("timestamp", "timestamp_ntz"):
        return value
    return _to_number(int(value) if source.kind == "boolean" else value, source, target)


def _to_number(value: Any, source: Type, target: Type) -> Any:
    if target.kind in BITS:
        if isinstance(value, float) and not math.isfinite(value):
            raise fail(f"{value} is not a whole number")
        return in_range(int(value), target)
    if target.kind == "decimal":
        if isinstance(value, float) and not math.isfinite(value):
            raise fail(f"{value} is not a decimal number")
        return fitted(decimal.Decimal(_shortest(value, source)), target)
    if target.kind == "float" and isinstance(value, int):
        return float(np.int64(value).astype(np.float32))
    return rounded(float(value), target)


def _shortest(value: Any, source: Type) -> str:
    return str(np.float32(value)) if source.kind == "float" else str(value)


def _from_text(text: str, target: Type) -> Any:
    if target.kind == "binary":
        return text.encode()
    trimmed = text.strip(_AROUND)
    if target.kind == "boolean":
        if trimmed.lower() not in (*_TRUE, *_FALSE):
            raise fail(f"{text!r} is not a boolean")
        return trimmed.lower() in _TRUE
    if target.kind in ("date", "timestamp", "timestamp_ntz"):
        return _moment(trimmed, target)
    if target.kind in BITS:
        if not re.fullmatch(r"[+-]?[0-9]+", trimmed):
            raise fail(f"{text!r} is not a whole number")
        return in_range(int(trimmed), target)
    if _NUMBER.fullmatch(trimmed):
        if target.kind != "decimal":
            return rounded(float(trimmed), target)
        try:
            return fitted(EXACT.create_decimal(decimal.Decimal(trimmed)), target)
        except decimal.InvalidOperation:
            raise fail(f"{text!r} does not fit {target}") from None
    if target.kind != "decimal" and re.fullmatch(r"nan|[+-]?inf(inity)?", trimmed, re.IGNORECASE):
        return float(trimmed)
    raise fail(f"{text!r} is not a number")


def _moment(text: str, target: Type) -> int:
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise fail(f"{text!r} is not a {target.kind}")
    year, month, day, hour, minute, second = (int(match[n] or 0) for n in range(1, 7))
    sign, zone_hour, zone_minute = match[8], int(match[9] or 0), int(match[10] or 0)
    days = days_from(year, month, day) if 1 <= month <= 12 else 0
    offset = zone_hour * 60 + zone_minute
    if civil(days) != (year, month, day) or hour > 23 or minute > 59 or second > 59:
        raise fail(f"{text!r} is not a {target.kind}")
    if offset > 18 * 60 or zone_minute > 59:
        raise fail(f"{text!r} has no zone that exists")
    if target.kind == "date":
        return days
    if target.kind == "timestamp_ntz":
        offset = 0
    minutes = (days * 24 + hour) * 60 + minute - (offset if sign == "+" else -offset)
    return (minutes * 60 + second) * SECOND + int((match[7] or "")[:6].ljust(6, "0"))


def _to_text(value: Any, source: Type) -> str:
    if source.kind == "boolean":
        return "true" if value else "false"
    if source.kind == "binary":
        return str(value, "utf-8", "replace")
    if source.kind == "decimal":
        return f"{value:f}"
    if source.kind in ("float", "double"):
        return _java(value, source)
    if source.kind == "date":
        return "{:04}-{:02}-{:02}".format(*civil(value))
    if source.kind in ("timestamp", "timestamp_ntz"):
        days, micros = divmod(value, DAY)
        seconds, fraction = divmod(micros, SECOND)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        tail = f".{fraction:06}".rstrip("0") if fraction else ""
        return "{:04}-{:02}-{:02}".format(*civil(days)) + f" {clock}{tail}"
    return str(value)


def _java(value: float, source: Type) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    minus = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return f"{minus}0.0"
    _, digits, exponent = decimal.Decimal(_shortest(abs(value), source)).normalize().as_tuple()
    text = "".join(map(str, digits))
    scale = len(digits) + int(exponent) - 1
    if -3 <= scale < 7:
        plain = f"{decimal.Decimal(_shortest(abs(value), source)):f}"
        whole, _, part = plain.partition(".")
        return f"{minus}{whole}.{part.rstrip('0') or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{scale}"


def _as_long(value: int) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise fail(f"{value} microseconds lie outside of all timestamps")
    return value
