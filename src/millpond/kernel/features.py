"""What a table's protocol asks of its readers, and whether it is known here.

Unknown writer features never keep a reader away; unknown reader features always do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.base.errors import CorruptLogError, UnsupportedFeatureError
from millpond.plan.types import TIMESTAMP_NTZ, VARIANT, DataType, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.kernel.actions import Metadata, Protocol

COLUMN_MAPPING: Final = "columnMapping"
DELETION_VECTORS: Final = "deletionVectors"
V2_CHECKPOINT: Final = "v2Checkpoint"
IN_COMMIT_TIMESTAMP: Final = "inCommitTimestamp"
CATALOG_MANAGED: Final = ("catalogManaged", "catalogOwned-preview")

_NTZ: Final = ("timestampNtz", "timestampWithoutTimezone")
_VARIANT: Final = ("variantType", "variantType-preview")
READER_FEATURES: Final = frozenset(
    {
        *(COLUMN_MAPPING, DELETION_VECTORS, V2_CHECKPOINT, "vacuumProtocolCheck"),
        *("typeWidening", "typeWidening-preview"),
        *_NTZ,
        *_VARIANT,
        *CATALOG_MANAGED,
    }
)
"""The reader features that are known here."""

_NEWEST_READER: Final = 3


def check_readable(protocol: Protocol, metadata: Metadata, table: str) -> None:
    """Refuse a table that can't be read rightly, and say why."""
    _check_shape(protocol, table)
    if protocol.min_reader_version > _NEWEST_READER:
        raise UnsupportedFeatureError(
            f"{table} needs reader version {protocol.min_reader_version}; "
            f"versions 1 to {_NEWEST_READER} are known",
            table=table,
            hint="its files, history and older versions may still be readable; "
            "see whether a newer millpond knows it",
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
    _check_types(protocol, metadata, table)


def is_catalog_managed(protocol: Protocol) -> bool:
    """Whether only a catalog knows the table's latest commits."""
    return any(protocol.reads(name) for name in CATALOG_MANAGED)


def mapping_mode(protocol: Protocol, metadata: Metadata) -> str:
    """`none`, `name` or `id`: how columns are found in files."""
    honoured = protocol.min_reader_version == 2 or protocol.reads(COLUMN_MAPPING)
    return metadata.configuration.get("delta.columnMapping.mode", "none") if honoured else "none"


def _check_shape(protocol: Protocol, table: str) -> None:
    has_features = protocol.reader_features is not None
    if (protocol.min_reader_version >= _NEWEST_READER) and not has_features:
        raise CorruptLogError(
            f"the protocol of {table} has reader version {protocol.min_reader_version} "
            "but lists no reader features",
            table=table,
        )
    if has_features and protocol.reader_features and protocol.min_reader_version < _NEWEST_READER:
        raise CorruptLogError(
            f"the protocol of {table} lists reader features, "
            f"which reader version {protocol.min_reader_version} does not have",
            table=table,
        )


def _check_types(protocol: Protocol, metadata: Metadata, table: str) -> None:
    found = set(_types(metadata.schema))
    for type_, names in ((TIMESTAMP_NTZ, _NTZ), (VARIANT, _VARIANT)):
        if type_ in found and not any(protocol.reads(name) for name in names):
            raise CorruptLogError(
                f"{table} has a column of type {type_}, "
                f"but its protocol lacks the feature {names[0]}",
                table=table,
            )


def _types(schema: Struct) -> Iterator[DataType]:
    todo: list[DataType] = [schema]
    while todo:
        type_ = todo.pop()
        yield type_
        if isinstance(type_, Struct):
            todo.extend(field.type for field in type_)
        elif isinstance(type_, List):
            todo.append(type_.element)
        elif isinstance(type_, Map):
            todo.extend((type_.key, type_.value))
