"""Small ponds with computed nodes, and how tests write to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millpond.steward.pond import Pond

START = datetime(2024, 1, 1, tzinfo=UTC)


def at(hours: float) -> datetime:
    """So many hours after the start."""
    return START + timedelta(hours=hours)


def append(pond: Pond, path: str, rows: Iterable[dict[str, Any]]) -> None:
    """Append rows to a series, in a transaction of its own."""
    with pond.write() as tx:
        tx.append_series(path, list(rows))
        tx.commit()


def make(pond: Pond, path: str, factory: str, **config: Any) -> None:
    """Make a node that is computed."""
    with pond.write() as tx:
        tx.make_factory(path, factory, config)
        tx.commit()


def rows_of(pond: Pond, path: str, **wanted: Any) -> list[dict[str, Any]]:
    """The rows of a path now."""
    found: list[dict[str, Any]] = pond.read().to_arrow(path, **wanted).to_pylist()
    return found
