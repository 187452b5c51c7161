"""`Row`: one thing that happened to a node. All rows together are the pond; see `tree.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

ROOT: Final = "00000000-0000-8000-8000-000000000000"
"""The id of the root directory, which no row is about."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class EntryType(StrEnum):
    """What a node is."""

    DIRECTORY = "directory"
    SYMLINK = "symlink"
    DATA = "data"
    """Bytes; the latest version counts."""
    DATA_SERIES = "data:series"
    """Bytes; all versions, one behind the other."""
    TABLE = "table"
    """Rows; the latest version counts."""
    SERIES = "series"
    """Rows of all versions, with a time."""
    COLLECTION = "collection"
    """JSON trees."""
    DYNAMIC_DIRECTORY = "dynamic:directory"
    DYNAMIC_FILE = "dynamic:file"
    DYNAMIC_TABLE = "dynamic:table"
    DYNAMIC_SERIES = "dynamic:series"
    EXECUTABLE = "executable"
    """A factory that does something when it is run, and has no rows."""

    @property
    def is_directory(self) -> bool:
        """Whether it has children."""
        return self in (EntryType.DIRECTORY, EntryType.DYNAMIC_DIRECTORY)

    @property
    def is_bytes(self) -> bool:
        """Whether it is made of bytes that are stored."""
        return self in (EntryType.DATA, EntryType.DATA_SERIES)

    @property
    def is_table(self) -> bool:
        """Whether a Delta table of its own is behind it."""
        return self in (EntryType.TABLE, EntryType.SERIES, EntryType.COLLECTION)

    @property
    def is_appended(self) -> bool:
        """Whether a new version adds to those before, so that two writers can both win."""
        return self in (EntryType.DATA_SERIES, EntryType.SERIES)

    @property
    def is_dynamic(self) -> bool:
        """Whether it is computed by a factory."""
        return self.value.startswith("dynamic:") or self is EntryType.EXECUTABLE


@dataclass(frozen=True, slots=True)
class Row:
    """A node after something happened to it: written, named anew, moved, removed.

    `part_id` is the directory that lists the node. A transaction has one row at most for a node in
    a directory, so the row with the highest `txn_seq` says what the node is now.
    """

    part_id: str
    node_id: str
    name: str
    entry_type: EntryType
    version: int = 1
    """Counts what was written, not what was renamed."""
    txn_seq: int = 0
    timestamp: int = 0
    """Microseconds since 1970, UTC, like all times here."""
    size: int | None = None
    blake3: str | None = None
    content: bytes | None = None
    """Given when a row is new; a tree's rows come without, ask `Tree.content`."""
    delta_version: int | None = None
    staged_commit: str | None = None
    min_event_time: int | None = None
    max_event_time: int | None = None
    min_override: int | None = None
    max_override: int | None = None
    time_column: str | None = None
    factory: str | None = None
    config: str | None = None
    extended_attributes: str | None = None
    """JSON."""
    removed: bool = False

    @property
    def written(self) -> int:
        """When it happened; that maintenance has written files anew since does not count."""
        text = self.extended_attributes
        if text is not None and REARRANGED in text:
            version, micros = self.attributes[REARRANGED]
            if version == self.version:
                return int(micros)
        return self.timestamp

    @property
    def time(self) -> datetime:
        """When it was `written`."""
        return from_micros(self.written)

    @property
    def begins_with(self) -> int:
        """The first version of a series that counts: a restored one counts without those before."""
        text = self.extended_attributes
        return self.attributes[BEGINS_WITH] if text is not None and BEGINS_WITH in text else 1

    @property
    def whole_size(self) -> int | None:
        """The size of all versions that count, where versions are appended; else of this one."""
        text = self.extended_attributes
        return self.attributes[WHOLE] if text is not None and WHOLE in text else self.size

    @property
    def attributes(self) -> dict[str, Any]:
        """The extended attributes."""
        found: dict[str, Any] = json.loads(self.extended_attributes or "{}")
        return found

    def with_attributes(self, **changed: Any) -> Row:
        """A copy with other attributes; None takes one away."""
        found = {k: v for k, v in {**self.attributes, **changed}.items() if v is not None}
        text = json.dumps(found, sort_keys=True, separators=(",", ":")) if found else None
        return replace(self, extended_attributes=text)


MOVED_FROM: Final = "millpond.moved_from"
"""An attribute of a node that was moved: the directory where its older rows are."""
MOVED_TO: Final = "millpond.moved_to"
"""An attribute of the row that took a moved node out of its old directory: the ids of the
directories down to its new one, with `/` between them; empty for the root."""

BEGINS_WITH: Final = "millpond.begins_with"
"""An attribute of a series that was restored: the version from which on versions count."""

WHOLE: Final = "millpond.whole_size"
"""An attribute of a series of more than one version: the size of all that count together."""

REARRANGED: Final = "millpond.rearranged"
"""An attribute of a node whose files were written anew: its version, and when that was written."""


def from_micros(micros: int) -> datetime:
    """A time out of microseconds.

    >>> from_micros(1_700_000_000_000_000).isoformat()
    '2023-11-14T22:13:20+00:00'
    """
    return _EPOCH + timedelta(microseconds=micros)


def to_micros(time: datetime) -> int:
    """Microseconds of a time."""
    return (time - _EPOCH) // timedelta(microseconds=1)
