"""Rows and files as multisets that can be compared: NaN equals NaN, and -0.0 is not 0.0."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def bag(rows: Iterable[Mapping[str, Any]], *, without: tuple[str, ...] = ()) -> Counter[str]:
    """The rows as texts, each with how often it is there."""
    return Counter(
        repr(sorted((name, value) for name, value in row.items() if name not in without))
        for row in rows
    )
