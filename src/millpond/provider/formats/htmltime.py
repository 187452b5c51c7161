"""Times in tables: ISO 8601, or month/day/year as Excel writes them in America; always in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
_AMERICAN: Final = re.compile(
    r"(\d\d?)/(\d\d?)/(\d{4})"
    r"(?: (\d\d?):(\d\d)(?::(\d\d)(?:\.\d+)?)?(?: ?([AaPp])\.?[Mm]\.?)?)?"
)


def as_time(text: str, format_: str | None, zone: ZoneInfo) -> datetime | None:
    """The time that a text says, in UTC; None if it says none.

    >>> from zoneinfo import ZoneInfo
    >>> as_time("5/1/2024 1:30:00 PM", None, ZoneInfo("America/Denver")).isoformat()
    '2024-05-01T19:30:00+00:00'
    >>> as_time("21.5", None, ZoneInfo("UTC")) is None
    True
    """
    plain = " ".join(text.split())
    try:
        found = _parsed(plain, format_)
    except ValueError:
        return None
    if found is None:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)


def _parsed(text: str, format_: str | None) -> datetime | None:
    if format_ is not None:
        return datetime.strptime(text, format_)  # noqa: DTZ007 - the zone is added
    if _ISO.fullmatch(text):
        return datetime.fromisoformat(text)
    found = _AMERICAN.fullmatch(text)
    if found is None:
        return None
    month, day, year, hour, minute = (int(found[n] or 0) for n in range(1, 6))
    if found[7]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found[7] in "Pp" else 0)
    return datetime(year, month, day, hour, minute, int(found[6] or 0))  # noqa: DTZ001
