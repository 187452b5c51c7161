"""Text as values: numbers, booleans, dates and timestamps. What can't be read is null.

Regular text is read by Arrow in one go; a column with spaces, signs or nonsense is read once for
each different value. Dates are taken apart by a pattern, and the calendar is arithmetic.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.cast_numbers import fit_decimal
from millpond.engine.arrow.eval.values import all_true, from_raw, map_unique
from millpond.plan.arrow import to_arrow
from millpond.plan.types import BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, Decimal, is_integral

if TYPE_CHECKING:
    from millpond.plan.types import DataType

_AROUND: Final = "".join(map(chr, range(0x21))) + "\x7f"
"""What is ignored around a value: white space and control characters of ASCII, as Spark does."""
_WHOLE: Final = r"^-?[0-9]+$"
_NUMBER: Final = r"^-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_SIGNED: Final = re.compile(r"[+-]?([0-9]+)", re.ASCII)
_READABLE: Final = re.compile(r"([+-]?)((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_NAMES: Final = {"nan": "nan", "inf": "inf", "infinity": "inf"}
_TRUE: Final = ("true", "t", "yes", "y", "1")
_FALSE: Final = ("false", "f", "no", "n", "0")
_MOMENT: Final = (
    r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?"
    r"(?P<zone>Z|(?P<sign>[+-])(?P<zone_hour>[0-9]{2}):(?P<zone_minute>[0-9]{2}))?)?$"
)
_MOMENT_RE: Final = re.compile(_MOMENT)
_PLAIN_DATE: Final = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_PLAIN_TIME: Final = r"[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_PLAIN: Final[dict[DataType, str]] = {
    DATE: f"{_PLAIN_DATE}$",
    TIMESTAMP: f"{_PLAIN_DATE}{_PLAIN_TIME}Z$",
    TIMESTAMP_NTZ: f"{_PLAIN_DATE}{_PLAIN_TIME}$",
}
"""The forms of most texts, which Arrow reads in the same way."""
_PARTS: Final = ("year", "month", "day", "hour", "minute", "second", "zone_hour", "zone_minute")
_DAYS_1970: Final = dt.date(1970, 1, 1).toordinal()
_DAYS_400: Final = 146_097


def from_text(column: pa.Array, target: DataType) -> pa.Array:
    """A column of strings as another scalar type; null where the text does not say one."""
    if target == BOOLEAN:
        return _booleans(column)
    if target in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return moments(_trimmed(column), target)
    if isinstance(target, Decimal):
        return map_unique(lambda text: read_decimal(text, target), column, to_arrow(target))
    if is_integral(target):
        return _whole_numbers(column, to_arrow(target))
    return _floats(column, to_arrow(target))


def _trimmed(column: pa.Array) -> pa.Array:
    return pc.ascii_trim(column, _AROUND)


def _booleans(column: pa.Array) -> pa.Array:
    text = pc.ascii_lower(_trimmed(column))
    true = pc.is_in(text, value_set=pa.array(_TRUE))
    known = pc.or_(true, pc.is_in(text, value_set=pa.array(_FALSE)))
    return pc.if_else(known, true, pa.scalar(None, pa.bool_()))


def _whole_numbers(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if all_true(pc.match_substring_regex(column, _WHOLE)):
        try:
            return column.cast(type_)
        except pa.ArrowInvalid:
            pass  # one is out of range: find it below
    half = 1 << (type_.bit_width - 1)
    return map_unique(lambda text: _read_whole(text, half), column, type_)


def _read_whole(text: str, half: int) -> int | None:
    match = _SIGNED.fullmatch(text.strip(_AROUND))
    if match is None or len(match[1].lstrip("0")) > 19:
        return None
    value = int(match[1].lstrip("0") or "0")
    value = -value if match[0][0] == "-" else value
    return value if -half <= value < half else None


def _floats(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if not all_true(pc.match_substring_regex(column, _NUMBER)):
        column = map_unique(_clean_number, column, pa.string())
    return column.cast(type_)


def _clean_number(text: str) -> str | None:
    """A number as Arrow reads it: without spaces and plus signs, names in its own way."""
    text = text.strip(_AROUND)
    match = _READABLE.fullmatch(text)
    if match is not None:
        return match[2] if match[1] != "-" else f"-{match[2]}"
    bare = text[1:] if text[:1] in ("+", "-") else text
    name = _NAMES.get(bare.lower())
    if name is None or (name == "nan" and bare != text):
        return None
    return f"-{name}" if text[0] == "-" else name


def read_decimal(text: str, type_: Decimal) -> decimal.Decimal | None:
    """A number's text as a decimal, rounded half up."""
    text = text.strip(_AROUND)
    if _READABLE.fullmatch(text) is None:
        return None
    try:
        return fit_decimal(decimal.Decimal(text), type_)
    except decimal.InvalidOperation:  # an exponent that no decimal has
        return None


def moments(column: pa.Array, target: DataType, *, zones: bool = True) -> pa.Array:
    """ISO 8601 texts as dates or timestamps; with `zones=False` a text with a zone is null."""
    plain = all_true(pc.match_substring_regex(column, _PLAIN[target]))
    if plain and (zones or target != TIMESTAMP):
        try:
            return column.cast(to_arrow(target))
        except pa.ArrowInvalid:
            pass  # there is no such day or hour: find it below
    parts = pc.extract_regex(column, _MOMENT)
    number = {name: _numbers(parts, name) for name in _PARTS}
    months = (number["year"] - 1970) * 12 + number["month"] - 1
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    length = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64) - first
    good = parts.is_valid().to_numpy(zero_copy_only=False)
    good &= (number["month"] >= 1) & (number["month"] <= 12)
    good &= (number["day"] >= 1) & (number["day"] <= length)
    good &= (number["hour"] < 24) & (number["minute"] < 60) & (number["second"] < 60)
    offset = number["zone_hour"] * 60 + number["zone_minute"]
    good &= (offset <= 18 * 60) & (number["zone_minute"] < 60)
    if not zones:
        good &= (
            pc.equal(pc.struct_field(parts, "zone"), "")
            .fill_null(False)
            .to_numpy(zero_copy_only=False)
        )
    days = first + number["day"] - 1
    if target == DATE:
        return from_raw(days.astype(np.int32), pa.date32(), ~good)
    if target == TIMESTAMP:
        east = pc.equal(pc.struct_field(parts, "sign"), "+").fill_null(False)
        offset = np.where(east.to_numpy(zero_copy_only=False), -offset, offset)
    else:
        offset = np.zeros_like(offset)
    minutes = (days * 24 + number["hour"]) * 60 + number["minute"] + offset
    micros = (minutes * 60 + number["second"]) * 1_000_000 + _fractions(parts)
    return from_raw(micros, to_arrow(target), ~good)


def _numbers(parts: pa.StructArray, name: str) -> np.ndarray[Any, Any]:
    """A part as numbers, 0 where it is missing."""
    text = pc.struct_field(parts, name)
    text = pc.if_else(pc.equal(text, ""), "0", text).fill_null("0")
    numbers: np.ndarray[Any, Any] = text.cast(pa.int64()).to_numpy()
    return numbers


def _fractions(parts: pa.StructArray) -> np.ndarray[Any, Any]:
    """Fractions of a second as microseconds; further digits are cut off."""
    text = pc.utf8_slice_codeunits(pc.struct_field(parts, "fraction"), 0, 6).fill_null("")
    micros: np.ndarray[Any, Any] = pc.utf8_rpad(text, 6, "0").cast(pa.int64()).to_numpy()
    return micros


def read_moment(text: str, target: DataType, *, zones: bool = True) -> int | None:
    """One ISO 8601 text as days or microseconds since 1970, as `moments` reads a column of them."""
    match = _MOMENT_RE.fullmatch(text)
    if match is None or (match["zone"] and not zones):
        return None
    part = {name: int(value or 0) for name, value in match.groupdict().items() if name in _PARTS}
    try:
        # Python's calendar has no year 0; 400 years later the days are the same.
        day = dt.date(part["year"] or 400, part["month"], part["day"]).toordinal()
        dt.time(part["hour"], part["minute"], part["second"])
    except ValueError:
        return None
    offset = part["zone_hour"] * 60 + part["zone_minute"]
    if offset > 18 * 60 or part["zone_minute"] > 59:
        return None
    days = day - _DAYS_1970 - (0 if part["year"] else _DAYS_400)
    if target == DATE:
        return days
    offset = 0 if target == TIMESTAMP_NTZ else -offset if match["sign"] == "+" else offset
    minutes = (days * 24 + part["hour"]) * 60 + part["minute"] + offset
    micros = int((match["fraction"] or "")[:6].ljust(6, "0"))
    return (minutes * 60 + part["second"]) * 1_000_000 + micros
