"""The files of a log as its store lists them, for upkeep, which reads no table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.kernel.names import LOG_DIRECTORY, parse_name
from millpond.kernel.segment import LogFile

if TYPE_CHECKING:
    from millpond.base.store import ObjectMeta, Store


def listed(store: Store, table: str) -> list[LogFile]:
    """All files of the log itself, by version."""
    prefix = f"{LOG_DIRECTORY}/"
    found = []
    for meta in store.list(prefix):
        name = parse_name(meta.path[len(prefix) :])
        if name is not None:
            found.append(LogFile(f"{table}/{meta.path}", name, meta.size, millis(meta)))
    return found


def millis(meta: ObjectMeta) -> int:
    """When an object was written, in milliseconds."""
    return int(meta.modified.timestamp() * 1000)
