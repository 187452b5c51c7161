"""JSON texts of statistics: numbers keep every digit, on the way in and on the way out."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any


class Number(str):
    """A number with a fraction or an exponent, as it stands in a text."""

    __slots__ = ()


def loads(text: str) -> Any:
    """A text whose fractions stay texts; NaN and Infinity, which JSON lacks, are a ValueError.

    >>> loads('{"a": 1.10}')
    {'a': '1.10'}
    """
    return json.loads(text, parse_float=Number, parse_constant=_refuse)


def dumps(value: Any) -> str:
    """The text of dictionaries, lists and scalars; a decimal is a number with all its digits.

    >>> dumps({"a": Decimal("1.10"), "b": Number("2.50"), "c": ["é", None]})
    '{"a":1.10,"b":2.50,"c":["é",null]}'
    """
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text(key)}:{dumps(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dumps, value)) + "]"
    if isinstance(value, Number):
        return str(value)
    return format(value, "f") if isinstance(value, Decimal) else _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
