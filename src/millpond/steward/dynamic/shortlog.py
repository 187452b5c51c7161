"""Columns and files of tables with a short history, straight from their commits.

A pond may have thousands of small series, and factories look at all that a pattern names. A plan
that replays a log costs more than the few lines of such a log, so they are read one by one here:
all of them, or those behind a version that is known. What is not as plain as our own tables are at
first is left to the kernel.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import ObjectNotFoundError
from millpond.fs.entry import to_micros
from millpond.kernel.actions import Metadata, Protocol
from millpond.kernel.age import age_of
from millpond.kernel.commits import Commit, check_chain, read_commit
from millpond.kernel.snapshot import without_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.base.store import Store
    from millpond.plan.types import Struct

MOST_COMMITS: Final = 16
COLUMN_MAPPING: Final = "delta.columnMapping.mode"


@dataclass(frozen=True, slots=True)
class Fact:
    """What is to be known of a live file."""

    path: str
    size: int
    written: int
    """When, in milliseconds."""
    rows: int | None = None
    first: int | None = None
    """The first time in it, in microseconds."""
    last: int | None = None
    hidden: str | None = None
    """Names its deletion vector."""
    age: str = ""
    """When it became part of the table: `millpond.kernel.age`."""


@dataclass(frozen=True, slots=True)
class Live:
    """A version of a table."""

    version: int
    schema: Struct
    files: Mapping[str, Fact]
    """By their paths."""
    is_plain: bool
    """Whether a scan of the files gives the rows as they are."""


def read_short(
    store: Store, table: str, version: int, time: str | None, *, since: Live | None = None
) -> Live | None:
    """What is live in a version; None if its log is long or in any way special."""
    first = 0 if since is None else since.version + 1
    if not 0 <= version - first < MOST_COMMITS or (since is not None and not since.is_plain):
        return None
    schema = None if since is None else since.schema
    live: dict[str, Fact] = {} if since is None else dict(since.files)
    has_protocol = since is not None
    before: Commit | None = None
    try:
        for number in range(first, version + 1):
            commit = read_commit(store, number, table)
            if before is not None:
                check_chain(before, commit, table)
            before, actions = commit, commit.actions
            adds = {add["path"]: _plain_fact(add, time) for add in actions.get("add", ())}
            removes = {remove["path"] for remove in actions.get("remove", ())}
            if adds.keys() & removes or len(adds) < len(actions.get("add", ())):
                return None
            live = {path: fact for path, fact in live.items() if path not in removes} | adds
            for found in actions.get("protocol", ()):
                has_protocol = _is_known(Protocol.from_dict(found))
            for found in actions.get("metaData", ()):
                schema = _plain_schema(Metadata.from_dict(found))
        if schema is None or not has_protocol:
            return None
        return Live(version, schema, live, is_plain=True)
    except (ObjectNotFoundError, KeyError, ValueError, TypeError):
        return None  # the kernel knows more of logs


def is_plain(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether files hold rows as they are, but for deletion vectors."""
    return _is_known(protocol) and _is_plain(metadata)


def _is_known(protocol: Protocol) -> bool:
    return protocol.min_reader_version == 1


def _is_plain(metadata: Metadata) -> bool:
    is_mapped = metadata.configuration.get(COLUMN_MAPPING, "none") != "none"
    return metadata.provider == "parquet" and not metadata.partition_columns and not is_mapped


def _plain_schema(metadata: Metadata) -> Struct:
    if not _is_plain(metadata):
        raise ValueError("files that are not rows as they are")
    return without_metadata(metadata.schema)


def _plain_fact(add: Mapping[str, Any], time: str | None) -> Fact:
    if add.get("deletionVector") is not None:
        raise ValueError("a file with a deletion vector")
    return fact_of(add, time)


def fact_of(add: Mapping[str, Any], time: str | None) -> Fact:
    """What an action says of a file; `time` is the column with the time of its rows.

    >>> found = fact_of({"path": "a", "size": 3, "modificationTime": 1, "stats": None}, None)
    >>> found.rows is None, found.last is None
    (True, True)
    """
    vector = add.get("deletionVector")
    stats = json.loads(add.get("stats") or "{}")
    return Fact(
        add["path"],
        add["size"],
        add["modificationTime"],
        stats.get("numRecords"),
        *times_in(stats, time),
        hidden=None if vector is None else f"{vector['pathOrInlineDv']} {vector['offset']}",
        age=age_of(add.get("tags")),
    )


def times_in(stats: Mapping[str, Any], column: str | None) -> tuple[int | None, int | None]:
    """The first and the last time of a column as statistics have them, in microseconds."""
    last = _micros(stats.get("maxValues", {}), column)
    # They are cut to milliseconds.
    return _micros(stats.get("minValues", {}), column), None if last is None else last + 999


def _micros(values: Mapping[str, Any], column: str | None) -> int | None:
    given = values.get(column) if column is not None else None
    if not isinstance(given, str):
        return None
    try:
        time = datetime.fromisoformat(given)
    except ValueError:
        return None
    return to_micros(time if time.tzinfo else time.replace(tzinfo=UTC))
