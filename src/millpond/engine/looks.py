"""What a text of a file has to look like to be taken for a number, a time or a boolean.

Types of columns are guessed by these rules, and text of a column whose type was guessed is read by
them: a cast takes more (`007`, `nan`, `yes`), but would change what such a text says. Both engines
use the same patterns, so they have to mean the same in RE2 and in Java.
"""

from __future__ import annotations

from typing import Final

from millpond.plan import types as t

EXACT: Final = 1 << 53
"""Whole numbers up to this one are exact as doubles."""

_WHOLE: Final = r"(?:0|[1-9][0-9]*)"
_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6}0*)?)?"
"""Digits beyond the microsecond would be cut off."""
PLAIN_NUMBER: Final = rf"[+-]?(?:{_WHOLE}(?:\.[0-9]*)?|\.[0-9]+)"
_LOOKS: Final[dict[t.DataType, str]] = {
    t.LONG: rf"[+-]?{_WHOLE}",
    t.DOUBLE: rf"{PLAIN_NUMBER}(?:[eE][+-]?[0-9]+)?",
    t.BOOLEAN: r"(?i:true|false)",
    t.DATE: _DAY,
    t.TIMESTAMP_NTZ: rf"{_DAY}(?:{_CLOCK})?",
    t.TIMESTAMP: rf"{_DAY}{_CLOCK}(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})",
}
_PLAIN_TIME: Final = r"[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_PLAIN_DAY: Final = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_PLAIN: Final[dict[t.DataType, str]] = {
    t.LONG: rf"-?{_WHOLE}",
    t.DOUBLE: rf"-?(?:{_WHOLE}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
    t.DATE: _PLAIN_DAY,
    t.TIMESTAMP_NTZ: _PLAIN_DAY + _PLAIN_TIME,
    t.TIMESTAMP: f"{_PLAIN_DAY}{_PLAIN_TIME}Z",
}
GUESSED: Final = tuple(_LOOKS)
"""The types that are guessed besides decimals, in the order in which they are tried."""
TIMES: Final[tuple[t.DataType, ...]] = (t.DATE, t.TIMESTAMP_NTZ, t.TIMESTAMP)
EXPONENT: Final = "[eE]"
EXACT_PLAIN: Final = rf"[eE]|^[ \t]*[+-]?{EXACT}[ \t]*\z"
"""Of numbers that are not below `EXACT`: those that a double holds as they were meant."""
NOT_ZERO: Final = "^[^eE]*[1-9]"
"""A number that says so is not zero, although the nearest double may be."""


def look_of(type_: t.DataType) -> str | None:
    """Return the pattern of texts that are values of a guessed type; None if any text is one.

    >>> import re
    >>> [bool(re.search(look_of(t.LONG).replace(r"\\z", "$"), text)) for text in ("7", "007", "-1")]
    [True, False, True]
    """
    pattern = _of_decimal(type_) if isinstance(type_, t.Decimal) else _LOOKS.get(type_)
    return None if pattern is None else around(pattern)


def plain_look_of(type_: t.DataType) -> str | None:
    """Return the pattern of most of those texts: without spaces and signs, times in full."""
    pattern = _PLAIN.get(type_)
    return None if pattern is None else rf"^(?:{pattern})\z"


def around(pattern: str) -> str:
    """Let spaces and tabs stand around a pattern, and nothing else."""
    return rf"^[ \t]*(?:{pattern})[ \t]*\z"


def _of_decimal(type_: t.Decimal) -> str:
    """Numbers without an exponent that lose no digit behind the point."""
    if not type_.scale:
        return rf"[+-]?{_WHOLE}\.?"
    digits = f"{{0,{type_.scale}}}"
    return rf"[+-]?(?:{_WHOLE}(?:\.[0-9]{digits})?|\.[0-9]{{1,{type_.scale}}})"


GUESSED_LATE: Final = (
    "types were guessed from the first rows: look at all rows with infer_rows=0, "
    "or declare the type of the column in a schema"
)
DECLARE: Final = (
    "declare another type of the column in the schema (a string takes everything), "
    'or read what does not fit as null with on_error="null"'
)
