"""Whether a table may be written here: what its protocol and properties ask of a writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.base.errors import CommitError, UnsupportedFeatureError
from millpond.kernel.features import CATALOG_MANAGED, DELETION_VECTORS, VARIANTS
from millpond.plan.types import VARIANT, Struct, types_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millpond.kernel.actions import Metadata, Protocol
    from millpond.kernel.snapshot import Snapshot

WRITER_FEATURES: Final = frozenset(
    {
        *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
        *("identityColumns", "columnMapping", DELETION_VECTORS, "timestampNtz"),
        *("timestampWithoutTimezone", "typeWidening", "typeWidening-preview", "v2Checkpoint"),
        *("vacuumProtocolCheck", "domainMetadata", "inCommitTimestamp", "clustering"),
        *("allowColumnDefaults", *CATALOG_MANAGED, *VARIANTS),
    }
)
"""Features that are honoured, or refused when a table really uses them."""

UPKEEP_FEATURES: Final = WRITER_FEATURES | {
    *("rowTracking", "icebergCompatV1", "icebergCompatV2", "icebergWriterCompatV1"),
}
"""Features whose tables can be looked after: they ask nothing of checkpoints and the like."""

_NEWEST_WRITER: Final = 7
_NEED: Final = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generated columns",
    "delta.identity.start": "identity columns",
    "CURRENT_DEFAULT": "column defaults",
}


def check_writable(snapshot: Snapshot) -> None:
    """Refuse a table that would be spoiled by writing rows to it from here."""
    _check_known(snapshot, WRITER_FEATURES)
    check_rules(snapshot.schema, snapshot.metadata.configuration, snapshot.table)


def check_rules(schema: Struct, configuration: Mapping[str, str], table: str) -> None:
    """Refuse a table that asks of new rows what is not looked at here."""
    used = sorted(set(_rules(schema, configuration)))
    if used:
        raise UnsupportedFeatureError(
            f"{table} has {', '.join(used)}, which can't be written here",
            table=table,
            features=tuple(used),
            hint="it can still be read; write it with an engine that knows them",
        )


def check_upkeep(snapshot: Snapshot) -> None:
    """Refuse a table whose log would be spoiled by a checkpoint or a clean-up from here."""
    _check_known(snapshot, UPKEEP_FEATURES)


def _check_known(snapshot: Snapshot, known: frozenset[str]) -> None:
    protocol, table = snapshot.protocol, snapshot.table
    if protocol.min_writer_version > _NEWEST_WRITER:
        raise UnsupportedFeatureError(
            f"{table} needs writer version {protocol.min_writer_version}; "
            f"versions up to {_NEWEST_WRITER} are known",
            table=table,
            hint="it can still be read",
        )
    unknown = sorted(set(protocol.writer_features or ()) - known)
    if unknown:
        raise UnsupportedFeatureError(
            f"{table} needs writer features that are not known here: {', '.join(unknown)}",
            table=table,
            features=tuple(unknown),
            hint="it can still be read",
        )


def _rules(schema: Struct, configuration: Mapping[str, str]) -> Iterator[str]:
    if any(key.startswith("delta.constraints.") for key in configuration):
        yield "check constraints"
    for type_ in types_in(schema):
        if type_ == VARIANT:
            yield "variants"
        elif isinstance(type_, Struct):
            for field in type_:
                known = field.metadata_dict()
                yield from (name for key, name in _NEED.items() if key in known)


def check_may_remove(snapshot: Snapshot) -> None:
    """Refuse to remove rows of an append-only table."""
    if _is_set(snapshot.metadata.configuration, "delta.appendOnly"):
        raise CommitError(
            f"{snapshot.table} is append-only: no row may be removed",
            table=snapshot.table,
            hint="set delta.appendOnly to false first",
        )


def writes_deletion_vectors(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether deletes mark rows instead of writing files anew."""
    enabled = _is_set(metadata.configuration, "delta.enableDeletionVectors")
    return enabled and protocol.writes(DELETION_VECTORS) and protocol.reads(DELETION_VECTORS)


def has_change_feed(configuration: Mapping[str, str]) -> bool:
    """Whether the change data feed is on."""
    return _is_set(configuration, "delta.enableChangeDataFeed")


def _is_set(configuration: Mapping[str, str], key: str) -> bool:
    return configuration.get(key, "").lower() == "true"
