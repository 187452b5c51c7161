"""Lengths of time as people write them: `15m`, `1h30m`, `1d`."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BeforeValidator

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


Micros = Annotated[int, BeforeValidator(parse_micros)]
"""A member of a configuration that is a length of time."""
