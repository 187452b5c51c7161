"""Durations in a table's properties, such as `interval 2 weeks`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from millpond.base.errors import PlanError

if TYPE_CHECKING:
    from millpond.kernel.actions import Metadata

DELETED_FILES: Final = "delta.deletedFileRetentionDuration"
LOG_FILES: Final = "delta.logRetentionDuration"
APP_TRANSACTIONS: Final = "delta.setTransactionRetentionDuration"
_DEFAULTS: Final = {DELETED_FILES: "interval 1 week", LOG_FILES: "interval 30 days"}
_UNITS: Final = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
}
_PART = re.compile(r"(\d+)\s+([A-Za-z]+?)s?(?:\s+|$)")


def duration_millis(metadata: Metadata, key: str) -> int | None:
    """A property's duration in milliseconds, its default, or None where there is none.

    >>> from millpond.kernel.actions import Metadata
    >>> duration_millis(Metadata("", "", configuration={LOG_FILES: "interval 1 day"}), LOG_FILES)
    86400000
    >>> duration_millis(Metadata("", ""), APP_TRANSACTIONS) is None
    True
    """
    text = metadata.configuration.get(key, _DEFAULTS.get(key))
    return None if text is None else parse_duration(key, text)


def parse_duration(key: str, text: str) -> int:
    """The milliseconds of a property's text."""
    rest = re.sub(r"^interval\s+", "", text.strip(), flags=re.IGNORECASE)
    total, position = 0, 0
    while position < len(rest):
        part = _PART.match(rest, position)
        scale = None if part is None else _UNITS.get(part[2].lower())
        if part is None or scale is None:
            break
        total += int(part[1]) * scale
        position = part.end()
    if not rest or position < len(rest):
        raise PlanError(f"{key} is {text!r}, not a duration", hint="such as 'interval 7 days'")
    return total
