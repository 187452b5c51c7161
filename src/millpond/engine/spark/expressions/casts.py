"""Casts with the documented grammar and range checks where Spark's own are wider.

Spark reads `1d`, `0x1p3`, `epoch` or `2024` where the page knows no such texts, lets 2^63 pass as
a long, and makes null of a NaN that should be a decimal. These are caught by native conditions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.engine.spark.expressions.literals import literal
from millpond.engine.spark.expressions.origin import place
from millpond.engine.spark.lambdas import each, safe
from millpond.engine.spark.types import to_cast
from millpond.plan import types as t

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

    from millpond.engine.spark.api import Api

_AROUND: Final = "".join(map(chr, range(0x21))) + "\x7f"
"""What is ignored around a value: white space and control characters of ASCII."""
_NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NAMED: Final = r"(?i:nan|[+-]?inf(?:inity)?)"
_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?"
_ZONE: Final = r"(?:Z|[+-](?:(?:0[0-9]|1[0-7]):[0-5][0-9]|18:00))"
MOMENT: Final = rf"\A{_DAY}(?:[T ]{_TIME}{_ZONE}?)?\z"
LOCAL_MOMENT: Final = rf"\A{_DAY}(?:[T ]{_TIME})?\z"
"""Dates and timestamps, and those of them that have no zone."""

_GRAMMAR: Final[Mapping[t.DataType, str]] = {
    **dict.fromkeys(t.INTEGRAL, r"\A[+-]?[0-9]+\z"),
    **dict.fromkeys(t.FRACTIONAL, rf"\A(?:{_NUMBER}|{_NAMED})\z"),
    t.BOOLEAN: r"(?i)\A(?:true|t|yes|y|1|false|f|no|n|0)\z",
    **dict.fromkeys((t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ), MOMENT),
}
_DECIMAL: Final = rf"\A{_NUMBER}\z"
# Spark reads six digits of a second and refuses more than nine.
_LONG_FRACTION: Final = r"(\.[0-9]{6})[0-9]+"
# Spark reads a zone behind seconds only.
_NO_SECONDS: Final = r"\A(.{16})([Z+-])"


def cast(
    column: Column, source: t.DataType, target: t.DataType, *, on_error: str, api: Api
) -> Column:
    """The value as another type; what does not fit is an error, or null.

    A value that is checked first is mentioned up to five times: see `repeats`.
    """
    if isinstance(source, t.List) and isinstance(target, t.List):
        return _each(column, source, target, on_error=on_error, api=api)
    if source == t.STRING and target != t.BINARY:
        return from_text(column, target, on_error=on_error, api=api)
    if source == t.BINARY and target == t.STRING:
        text: Column = api.functions.make_valid_utf8(column.cast(to_cast(t.STRING)))
        return text
    if isinstance(source, t.Decimal) and target in (t.BYTE, t.SHORT, t.INTEGER):
        # Spark would go by way of a double, which rounds.
        column, source = _plain(column, t.LONG, on_error=on_error), t.LONG
    if repeats(source, target):
        fits = _fits(column, source, target, api)
        column = _checked(column, fits, target, on_error=on_error, api=api)
    return _plain(column, target, on_error=on_error)


def repeats(source: t.DataType, target: t.DataType) -> bool:
    """Whether a cast mentions its value more than once, to check it before Spark's own cast."""
    if source == t.STRING:
        return target not in (t.STRING, t.BINARY)
    return t.is_fractional(source) and (target == t.LONG or isinstance(target, t.Decimal))


def from_text(
    column: Column, target: t.DataType, *, on_error: str, api: Api, pattern: str | None = None
) -> Column:
    """Text as a value of another type: what is around it is cut off, then it has to match."""
    f = api.functions
    if pattern is None:
        column = f.btrim(column, f.lit(_AROUND))
        pattern = _DECIMAL if isinstance(target, t.Decimal) else _GRAMMAR[target]
    checked = _checked(column, f.rlike(column, f.lit(pattern)), target, on_error=on_error, api=api)
    if pattern not in (MOMENT, LOCAL_MOMENT):
        return _plain(checked, target, on_error=on_error)
    checked = f.regexp_replace(checked, _LONG_FRACTION, "$1")
    checked = f.regexp_replace(checked, _NO_SECONDS, "$1:00$2")
    if target == t.DATE:
        # Spark takes a date's text as it comes, whatever follows the day.
        checked = _plain(checked, t.TIMESTAMP_NTZ, on_error=on_error)
    return _plain(checked, target, on_error=on_error)


def _plain(column: Column, target: t.DataType, *, on_error: str) -> Column:
    type_ = to_cast(target)
    return column.try_cast(type_) if on_error == "null" else column.cast(type_)


def _each(column: Column, source: t.List, target: t.List, *, on_error: str, api: Api) -> Column:
    if source.element in (target.element, t.NULL):
        return column.cast(to_cast(target))

    def one(element: Column) -> Column:
        return cast(element, source.element, target.element, on_error=on_error, api=api)

    return each(api, "transform", safe(column, source.element, api), one)


def _fits(column: Column, source: t.DataType, target: t.DataType, api: Api) -> Column:
    """What has to hold of a fraction before Spark's own cast gives the documented answer."""
    if isinstance(target, t.Decimal):
        return _finite(column, api)
    below: Column = column < literal(float(1 << 63), source, api)
    return below


def _finite(column: Column, api: Api) -> Column:
    infinity = api.functions.lit(float("inf"))
    finite: Column = (column < infinity) & (column > -infinity)
    return finite


def _checked(
    column: Column, fits: Column, target: t.DataType, *, on_error: str, api: Api
) -> Column:
    """The value where it fits or is null, and otherwise an error or null."""
    f = api.functions
    made: Column = f.when(fits, column)
    if on_error == "null":
        return made
    shown = column.cast(to_cast(t.STRING))
    text = f.concat(f.lit("'"), shown, f.lit(f"' is not a {target}{place()}"))
    return made.when(column.isNotNull(), f.raise_error(text))
