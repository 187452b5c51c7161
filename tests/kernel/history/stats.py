"""Statistics of a file as writers leave them: none, counts only, full, or with shortened texts."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from tests.kernel.history.model import Row

KEPT: Final = 4
"""Characters that a shortened text keeps."""

LAST: Final = "\U0010ffff"
"""Follows a shortened greatest text, so that it is not less than what it stands for."""


def statistics(
    rng: Random, rows: Sequence[Row], types: Mapping[str, str], *, deleted: bool
) -> str | None:
    """The text of the statistics: true of all rows, of deleted ones too; or none."""
    kind = rng.choice(["none", "count", "full", "full", "short"])
    if kind == "none":
        return None
    found: dict[str, Any] = {"numRecords": len(rows)}
    if kind != "count":
        bounds = {s: _bounds([row.get(s) for row in rows]) for s in types if _is_data(s, rows)}
        known = {s: pair for s, pair in bounds.items() if pair is not None}
        found["minValues"] = {s: _short(low, kind, end="") for s, (low, _) in known.items()}
        found["maxValues"] = {s: _short(high, kind, end=LAST) for s, (_, high) in known.items()}
        found["nullCount"] = {s: sum(row.get(s) is None for row in rows) for s in bounds}
    if deleted or rng.random() < 0.2:
        found["tightBounds"] = not deleted
    return json.dumps(found)


def _is_data(stored: str, rows: Sequence[Row]) -> bool:
    return bool(rows) and stored in rows[0]


def _bounds(values: list[Any]) -> tuple[Any, Any] | None:
    """The least and the greatest; none where there is nothing that can be compared and written."""
    there = [value for value in values if value is not None]
    if not there or any(isinstance(v, float) and not math.isfinite(v) for v in there):
        return None
    return min(there), max(there)


def _short(value: Any, kind: str, *, end: str) -> Any:
    if kind != "short" or not isinstance(value, str) or len(value) <= KEPT:
        return value
    return value[:KEPT] + end
