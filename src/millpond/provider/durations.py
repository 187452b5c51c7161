"""Lengths of time as people write them: `15m`, `1h30m`, `1d`."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BeforeValidator, WithJsonSchema

_UNITS: Final = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "sec": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 7 * 86_400_000_000,
}
_PART: Final = re.compile(r"\s*([0-9]+)\s*([a-z]+)\s*")


def parse_micros(given: object) -> int:
    """A length of time in microseconds.

    >>> parse_micros("1h30m") // 60_000_000
    90
    """
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    text = str(given)
    at, micros = 0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2] not in _UNITS:
            raise ValueError(f"{text!r} is no length of time: write 15m, 1h30m, 1d")
        micros += int(part[1]) * _UNITS[part[2]]
        at = part.end()
    if micros <= 0:
        raise ValueError(f"{text!r} is no length of time: write 15m, 1h30m, 1d")
    return micros


def _parse_phase(given: object) -> int:
    return 0 if given in (0, "0") else parse_micros(given)


KIND: Final = "x-millpond-type"
"""What a JSON schema says where JSON has no such type."""
_SCHEMA: Final = WithJsonSchema(
    {"type": "string", KIND: "duration", "examples": ["15m", "1h30m", "1d"]}
)
Micros = Annotated[int, BeforeValidator(parse_micros), _SCHEMA]
"""A member of a configuration that is a length of time."""
Phase = Annotated[int, BeforeValidator(_parse_phase), _SCHEMA]
"""The same, or 0."""
Length = Annotated[str, _SCHEMA]
"""A length of time that stays as it is written; `parse_micros` reads it."""


def in_units(micros: int) -> str:
    """A length of time as people write it.

    >>> in_units(86_400_000_000), in_units(5_400_000_000), in_units(0)
    ('1d', '1h30m', '0')
    """
    said = ""
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, micros = divmod(micros, _UNITS[unit])
        said += f"{count}{unit}" if count else ""
    return said or "0"
