"""Oracles: whether rows say what the text says, exactly, and whether two tables are the same."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_LOOSE: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WHOLE: Final = re.compile(r"-?(0|[1-9]\d*)")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?(\d\d)?)?")


def says(text: str, value: Any) -> bool:
    """Tell whether a value is what a field of a CSV file says: all of it, and nothing else.

    >>> says("1.5", 1.5), says("007", 7), says("9007199254740993", 9007199254740992.0)
    (True, False, False)
    """
    if value is None:
        return text == ""
    if isinstance(value, str):
        return value == text
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if isinstance(value, int | float | Decimal):
        return _loosely_number(text) and _is_number(text.strip(), value)
    return _is_time(text, value)


def _loosely_number(text: str) -> bool:
    """Leading zeros are text, signs and missing digits are only another spelling."""
    stripped = text.strip()
    digits = stripped.lstrip("+-")
    return _LOOSE.fullmatch(stripped) is not None and not re.match(r"0\d", digits)


def _is_number(text: str, value: float | Decimal) -> bool:
    """Whole numbers are exact; fractions are the nearest that there is, and finite."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return False
        if _WHOLE.fullmatch(text.lstrip("+")):
            return Decimal(text) == Decimal(value)
        return float(text) == value
    try:
        return Decimal(text) == Decimal(value)
    except InvalidOperation:
        return False


def _is_time(text: str, value: Any) -> bool:
    if isinstance(value, datetime):
        if not _TIME.fullmatch(text.strip()) and isinstance(value, datetime):
            return _is_date(text, value)
        meant = datetime.fromisoformat(_in_micros(text.strip()))
        if (value.tzinfo is None) != (meant.tzinfo is None):
            return False
        return value == meant
    if isinstance(value, date):
        return text.strip() == value.isoformat()
    return False


def _is_date(text: str, value: datetime) -> bool:
    return (
        value.tzinfo is None
        and text.strip() == value.date().isoformat()
        and value.time() == datetime.min.time()
    )


def _in_micros(text: str) -> str:
    """Cut zeros beyond the microsecond: nothing is lost by that."""
    return re.sub(r"(\.\d{6})0+(?=\D|$)", r"\1", text)


def json_says(meant: Any, value: Any) -> bool:
    """Tell whether a value is what JSON says; numbers in `meant` are `Number`.

    A value of a column with values of several kinds may come as its JSON text.
    """
    if meant is None or value is None:
        return meant is None and (value is None or value == "null")
    if isinstance(value, str):
        return meant == value if isinstance(meant, str) else _same_json(value, meant)
    if isinstance(meant, Number):
        return (
            not isinstance(value, bool | str)
            and isinstance(value, int | float | Decimal)
            and (_is_number(meant.text, value))
        )
    if isinstance(meant, bool):
        return value is meant
    if isinstance(meant, str):
        return _is_time(meant, value)
    if isinstance(meant, list):
        return (
            isinstance(value, list)
            and len(value) == len(meant)
            and all(map(json_says, meant, value))
        )
    if isinstance(value, list):  # a map
        value = dict(value)
    return (
        isinstance(value, dict)
        and all(name in value for name, inner in meant.items() if inner is not None)
        and all(json_says(meant.get(name), inner) for name, inner in value.items())
    )


class Number:
    """A number of JSON with its spelling."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and Decimal(self.text) == Decimal(other.text)

    def __hash__(self) -> int:
        return hash(Decimal(self.text))


def parse_json(text: str) -> Any:
    """Parse JSON with exact numbers; constants that are not JSON are errors."""
    return json.loads(
        text,
        parse_int=Number,
        parse_float=Number,
        parse_constant=_no_constant,
        object_pairs_hook=_no_duplicates,
    )


class Ambiguous(ValueError):  # noqa: N818 - says what the text is
    """JSON of which parsers may make different things."""


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Ambiguous("a key occurs twice")
    return found


def _same_json(text: str, meant: Any) -> bool:
    try:
        return bool(parse_json(text) == meant)
    except ValueError:
        return False


def json_objects(content: bytes) -> list[dict[str, Any]] | None:
    """The objects of JSON lines; None where Python has no clear answer."""
    try:
        lines = content.decode().split("\n")
        objects = [parse_json(line) for line in lines if line.strip()]
    except (ValueError, RecursionError):
        return None
    if not objects or not all(isinstance(each, dict) for each in objects):
        return None
    return objects


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Tell whether two tables have the same columns and rows in the same order; NaN equals NaN."""
    return _columns(one) == _columns(other) and comparable(one) == comparable(other)


def _columns(rows: pa.Table) -> list[tuple[str, str]]:
    """Names, and the kinds of times, whose numbers mean nothing without them."""
    kinds = (
        str(column.type) if _is_temporal(column) else "" for column in map(_plain, rows.columns)
    )
    return list(zip(rows.column_names, kinds, strict=True))


def _is_temporal(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_temporal(column.type))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values without a dictionary; moments in microseconds, their zone being only for showing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", None if column.type.tz is None else "UTC"))
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:  # bytes that are not text are compared as they are
            column = column.cast(pa.binary())
    return column


def comparable(rows: pa.Table) -> list[Any]:
    """Rows as values that can be compared: NaN and -0.0 have a text of their own."""
    columns = [_numbered(_plain(column)).to_pylist() for column in rows.columns]
    return [[_comparable(value) for value in row] for row in zip(*columns, strict=True)]


def _numbered(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates and times as numbers: not all of them are dates of Python."""
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    if isinstance(value, dict):
        return {name: _comparable(each) for name, each in value.items()}
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value
