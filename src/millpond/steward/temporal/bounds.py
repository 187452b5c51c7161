"""Bounds of series: from when to when their rows count, whatever was or will be appended."""

from __future__ import annotations

from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING

from millpond.base.errors import PathTypeError
from millpond.fs.entry import EntryType, from_micros, to_micros
from millpond.steward.rows.selection import matching
from millpond.steward.temporal.times import in_utc

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from millpond.steward.scope import Scope
    from millpond.steward.write import WriteScope


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one series; None is an open end."""

    path: str
    first: datetime | None
    last: datetime | None


def set_bounds(
    tx: WriteScope,
    paths: Sequence[str],
    *,
    first: datetime | EllipsisType | None = ...,
    last: datetime | EllipsisType | None = ...,
) -> list[Bounds]:
    """Set the bounds of series, both of which belong to them; None opens an end."""
    found = []
    for path in series_at(tx, paths):
        row = tx.row(path)
        low = row.min_override if isinstance(first, EllipsisType) else _micros(first)
        high = row.max_override if isinstance(last, EllipsisType) else _micros(last)
        if low is not None and high is not None and high < low:
            raise PathTypeError(
                f"{path} would end at {from_micros(high)}, before it begins at {from_micros(low)}",
                path=path,
                hint="give both ends, or open one of them",
            )
        if (low, high) != (row.min_override, row.max_override):
            tx.change(path, min_override=low, max_override=high)
        found.append(Bounds(path, _time(low), _time(high)))
    return found


def series_at(scope: Scope, paths: Sequence[str]) -> list[str]:
    """The series that paths and patterns name; what a pattern matches beside them is left out."""
    found: dict[str, None] = {}
    for path in paths:
        matches = matching(scope, path)
        series = [one for one in matches if scope.row(one).entry_type is EntryType.SERIES]
        if not series:
            kind = scope.row(matches[0]).entry_type
            raise PathTypeError(
                f"{path} is a {kind} and has no time"
                if len(matches) == 1
                else f"nothing that matches {path} is a series",
                path=path,
                hint="host+series:// and host+csv+series:// copy rows in as a series",
            )
        found |= dict.fromkeys(series)
    return list(found)


def _micros(time: datetime | None) -> int | None:
    return None if time is None else to_micros(in_utc(time))


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
