"""Whether a table may be written here: what its protocol and properties ask of a writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.base.errors import CommitError, UnsupportedFeatureError
from millpond.kernel.features import DELETION_VECTORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.kernel.actions import Metadata, Protocol
    from millpond.kernel.snapshot import Snapshot
    from millpond.plan.types import Struct

WRITER_FEATURES: Final = frozenset(
    {
        *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
        *("identityColumns", "columnMapping", DELETION_VECTORS, "timestampNtz"),
        *("timestampWithoutTimezone", "typeWidening", "typeWidening-preview", "v2Checkpoint"),
        *("vacuumProtocolCheck", "domainMetadata", "inCommitTimestamp", "clustering"),
        *("allowColumnDefaults", "catalogManaged", "catalogOwned-preview"),
    }
)
"""Features that are honoured, or refused when a table really uses them."""

_NEWEST_WRITER: Final = 7
_NEED: Final = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generated columns",
    "delta.identity.start": "identity columns",
}


def check_writable(snapshot: Snapshot) -> None:
    """Refuse a table that would be spoiled by writing to it from here."""
    protocol, table = snapshot.protocol, snapshot.table
    if protocol.min_writer_version > _NEWEST_WRITER:
        raise UnsupportedFeatureError(
            f"{table} needs writer version {protocol.min_writer_version}; "
            f"versions up to {_NEWEST_WRITER} are known",
            table=table,
            hint="it can still be read",
        )
    unknown = sorted(set(protocol.writer_features or ()) - WRITER_FEATURES)
    if unknown:
        raise UnsupportedFeatureError(
            f"{table} needs writer features that are not known here: {', '.join(unknown)}",
            table=table,
            features=tuple(unknown),
            hint="it can still be read",
        )
    used = sorted(set(_rules(snapshot.schema, snapshot.metadata)))
    if used:
        raise UnsupportedFeatureError(
            f"{table} has {', '.join(used)}, which can't be checked here",
            table=table,
            features=tuple(used),
            hint="it can still be read; write it with an engine that evaluates them",
        )


def _rules(schema: Struct, metadata: Metadata) -> Iterator[str]:
    for key in metadata.configuration:
        if key.startswith("delta.constraints."):
            yield "check constraints"
    for field in schema:
        known = field.metadata_dict()
        for key, name in _NEED.items():
            if key in known:
                yield name


def is_append_only(metadata: Metadata) -> bool:
    """Whether rows may never be removed."""
    return _is_set(metadata, "delta.appendOnly")


def check_may_remove(snapshot: Snapshot) -> None:
    """Refuse to remove rows of an append-only table."""
    if is_append_only(snapshot.metadata):
        raise CommitError(
            f"{snapshot.table} is append-only: no row may be removed",
            table=snapshot.table,
            hint="set delta.appendOnly to false first",
        )


def writes_deletion_vectors(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether deletes mark rows instead of writing files anew."""
    enabled = _is_set(metadata, "delta.enableDeletionVectors")
    return enabled and protocol.writes(DELETION_VECTORS) and protocol.reads(DELETION_VECTORS)


def has_change_feed(metadata: Metadata) -> bool:
    """Whether the change data feed is on."""
    return _is_set(metadata, "delta.enableChangeDataFeed")


def _is_set(metadata: Metadata, key: str) -> bool:
    return metadata.configuration.get(key, "").lower() == "true"
