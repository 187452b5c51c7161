"""Columns and files of tables with a short history, straight from their commits.

A pond may have thousands of small series, and factories look at all that a pattern names. A plan
that replays a log costs more than the few lines of such a log, so they are read one by one here.
What is not as plain as our own tables are at first is left to the kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import CorruptLogError, ObjectNotFoundError
from millpond.kernel.actions import Metadata, Protocol
from millpond.kernel.snapshot import without_metadata
from millpond.kernel.write.commit import read_winner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.base.store import Store
    from millpond.plan.types import Struct

MOST_COMMITS: Final = 16
_MODE: Final = "delta.columnMapping.mode"


def read_short(
    store: Store, table: str, version: int
) -> tuple[Struct, list[dict[str, Any]]] | None:
    """The columns and live files of a version; None if its log is long or in any way special."""
    if version >= MOST_COMMITS:
        return None
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    live: dict[str, Mapping[str, Any]] = {}
    try:
        for number in range(version + 1):
            actions = read_winner(store, number, table).actions
            adds = {add["path"]: add for add in actions.get("add", ())}
            removes = {remove["path"] for remove in actions.get("remove", ())}
            if adds.keys() & removes or len(adds) < len(actions.get("add", ())):
                return None
            live = {path: add for path, add in live.items() if path not in removes} | adds
            for found in actions.get("protocol", ()):
                protocol = Protocol.from_dict(found)
            for found in actions.get("metaData", ()):
                metadata = Metadata.from_dict(found)
        if protocol is None or metadata is None or not _is_plain(protocol, metadata):
            return None
        files = [_file(add) for add in live.values()]
        return without_metadata(metadata.schema), files
    except (ObjectNotFoundError, CorruptLogError, KeyError, ValueError, TypeError):
        return None  # the kernel says what is wrong


def _is_plain(protocol: Protocol, metadata: Metadata) -> bool:
    is_mapped = metadata.configuration.get(_MODE, "none") != "none"
    return (
        protocol.min_reader_version == 1
        and metadata.provider == "parquet"
        and not metadata.partition_columns
        and not is_mapped
    )


def _file(add: Mapping[str, Any]) -> dict[str, Any]:
    if add.get("deletionVector") is not None:
        raise ValueError("a file with a deletion vector")
    return {
        "path": add["path"],
        "size": add["size"],
        "stats": add.get("stats"),
        "deletionVector": None,
        "modificationTime": add["modificationTime"],
    }
