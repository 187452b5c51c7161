"""What a table's protocol asks of its readers, and whether it is known here.

Unknown writer features never keep a reader away; unknown reader features always do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.base.errors import CorruptLogError, UnsupportedFeatureError
from millpond.plan.types import TIMESTAMP_NTZ, VARIANT, types_in

if TYPE_CHECKING:
    from millpond.kernel.actions import Metadata, Protocol
    from millpond.plan.types import Struct

COLUMN_MAPPING: Final = "columnMapping"
DELETION_VECTORS: Final = "deletionVectors"
V2_CHECKPOINT: Final = "v2Checkpoint"
IN_COMMIT_TIMESTAMP: Final = "inCommitTimestamp"
IN_COMMIT_TIMESTAMPS: Final = "delta.enableInCommitTimestamps"
CATALOG_MANAGED: Final = ("catalogManaged", "catalogOwned-preview")

_NTZ: Final = ("timestampNtz", "timestampWithoutTimezone")
_VARIANT: Final = ("variantType", "variantType-preview")
VARIANTS: Final = (*_VARIANT, "variantShredding", "variantShredding-preview")
READER_FEATURES: Final = frozenset(
    {
        *(COLUMN_MAPPING, DELETION_VECTORS, V2_CHECKPOINT, "vacuumProtocolCheck"),
        *("typeWidening", "typeWidening-preview"),
        *_NTZ,
        *VARIANTS,
        *CATALOG_MANAGED,
    }
)
"""The reader features that are known here."""

_NEWEST_READER: Final = 3
_WRITER_WITH_FEATURES: Final = 7


def check_protocol(protocol: Protocol, table: str) -> None:
    """Refuse a protocol that is not known here, or breaks its own rules; no schema is looked at."""
    if protocol.min_reader_version > _NEWEST_READER:
        raise UnsupportedFeatureError(
            f"{table} needs reader version {protocol.min_reader_version}; "
            f"versions 1 to {_NEWEST_READER} are known",
            table=table,
            hint="read a version from before the upgrade, or see whether a newer millpond knows it",
        )
    unknown = sorted(set(protocol.reader_features or ()) - READER_FEATURES)
    if unknown:
        raise UnsupportedFeatureError(
            f"{table} needs reader features that are not known here: {', '.join(unknown)}",
            table=table,
            features=tuple(unknown),
            hint="read a version from before the feature was enabled, "
            "or see whether a newer millpond knows it",
        )
    _check_shape(protocol, table)


def check_metadata(protocol: Protocol, metadata: Metadata, schema: Struct, table: str) -> None:
    """Refuse a table that uses what its protocol does not allow."""
    found = set(types_in(schema))
    for type_, names in ((TIMESTAMP_NTZ, _NTZ), (VARIANT, _VARIANT)):
        if type_ in found and not any(protocol.reads(name) for name in names):
            raise _broken(
                f"{table} has a column of type {type_}, "
                f"but its protocol lacks the feature {names[0]}",
                table,
            )
    states_times = metadata.configuration.get(IN_COMMIT_TIMESTAMPS, "").lower() == "true"
    if is_catalog_managed(protocol) and not states_times:
        raise _broken(
            f"{table} is managed by a catalog and has no in-commit timestamps, which it must have",
            table,
        )


def is_catalog_managed(protocol: Protocol) -> bool:
    """Whether only a catalog knows the table's latest commits."""
    return any(protocol.reads(name) for name in CATALOG_MANAGED)


def mapping_mode(protocol: Protocol, metadata: Metadata) -> str:
    """`none`, `name` or `id`: how columns are found in files."""
    honoured = protocol.min_reader_version == 2 or protocol.reads(COLUMN_MAPPING)
    return metadata.configuration.get("delta.columnMapping.mode", "none") if honoured else "none"


def _check_shape(protocol: Protocol, table: str) -> None:
    """Features are listed from a version on, and those of readers among those of writers, too."""
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    ours, theirs = protocol.reader_features, protocol.writer_features
    what = None
    if reader < 1:
        what = f"has the reader version {reader}"
    elif reader == _NEWEST_READER and ours is None:
        what = f"has reader version {reader} but lists no reader features"
    elif reader < _NEWEST_READER and ours:
        what = f"lists reader features, which reader version {reader} does not have"
    elif reader == _NEWEST_READER and (writer < _WRITER_WITH_FEATURES or theirs is None):
        what = f"has reader version {reader} but writer version {writer} without features"
    elif ours and theirs is not None:
        alone = sorted(set(ours) - set(theirs))
        what = f"asks {alone[0]} of readers, but not of writers" if alone else None
    if what is not None:
        raise _broken(f"the protocol of {table} {what}", table)


def _broken(problem: str, table: str) -> CorruptLogError:
    return CorruptLogError(
        problem,
        table=table,
        hint="an older version may still be readable; "
        "the tool that wrote this one has to mend its protocol",
    )
