"""The protocol that a table needs for its schema and properties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.base.errors import PlanError, SchemaError
from millpond.kernel.actions import Protocol
from millpond.kernel.features import (
    CATALOG_MANAGED,
    DELETION_VECTORS,
    READER_FEATURES,
    V2_CHECKPOINT,
)
from millpond.kernel.write.features import WRITER_FEATURES
from millpond.kernel.write.info import STATED_TIMES
from millpond.kernel.write.properties import checked_properties
from millpond.plan.types import TIMESTAMP_NTZ, VARIANT, types_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.plan.types import Struct

MAPPING_MODE: Final = "delta.columnMapping.mode"
FEATURE: Final = "delta.feature."
"""`delta.feature.<name> = supported` asks for a feature by its name; it is no property to keep."""

_BOTH: Final = {
    ("delta.enableDeletionVectors", "true"): DELETION_VECTORS,
    (MAPPING_MODE, "name"): "columnMapping",
    (MAPPING_MODE, "id"): "columnMapping",
    ("delta.enableTypeWidening", "true"): "typeWidening",
    ("delta.checkpointPolicy", "v2"): V2_CHECKPOINT,
}
_WRITER: Final = {
    ("delta.appendOnly", "true"): "appendOnly",
    ("delta.enableChangeDataFeed", "true"): "changeDataFeed",
    (STATED_TIMES, "true"): "inCommitTimestamp",
}
_LEGACY: Final = {
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
}
"""What each writer version stands for, beside what the ones before do."""


def needed_protocol(
    schema: Struct,
    configuration: Mapping[str, str],
    *,
    domains: bool = False,
    features: frozenset[str] = frozenset(),
    old: Protocol | None = None,
) -> Protocol:
    """The least protocol for these, that also keeps what an older one asks for."""
    reader, writer = _features(old or Protocol(1, 2))
    known = (set(reader), set(writer))
    settings = {(key, value.lower()) for key, value in configuration.items()}
    reader |= {feature for setting, feature in _BOTH.items() if setting in settings}
    reader |= _of_types(schema) | (features & READER_FEATURES)
    writer |= {feature for setting, feature in _WRITER.items() if setting in settings}
    writer |= features
    if domains:
        writer.add("domainMetadata")
    if features & set(CATALOG_MANAGED):
        writer.add("inCommitTimestamp")
    writer |= reader
    if (reader, writer) == known:
        return old or Protocol(1, 2)
    listed = tuple(sorted(writer))
    return Protocol(3, 7, tuple(sorted(reader)), listed) if reader else Protocol(1, 7, None, listed)


def asked_features(
    configuration: Mapping[str, str | None],
) -> tuple[dict[str, str | None], frozenset[str]]:
    """Properties without those that ask for a feature, and the features."""
    configuration = checked_properties(configuration, "configuration=")
    kept = {key: value for key, value in configuration.items() if not key.startswith(FEATURE)}
    names = [key.removeprefix(FEATURE) for key in configuration if key.startswith(FEATURE)]
    for name in names:
        value = configuration[FEATURE + name]
        if value not in ("supported", "enabled"):
            raise PlanError(f"{FEATURE}{name} is {value!r}", hint="it can only be 'supported'")
        if name not in WRITER_FEATURES:
            raise PlanError(
                f"the feature {name!r} is not known here",
                hint=f"known: {', '.join(sorted(WRITER_FEATURES))}",
            )
    return kept, frozenset(names)


def _features(protocol: Protocol) -> tuple[set[str], set[str]]:
    """What readers and writers have to know, by names."""
    reader = set(protocol.reader_features or ())
    writer = set(protocol.writer_features or ())
    if protocol.min_reader_version == 2:
        reader.add("columnMapping")
    if protocol.writer_features is None:
        for version, names in _LEGACY.items():
            writer |= set(names) if version <= protocol.min_writer_version else set()
    return reader, writer | reader


def _of_types(schema: Struct) -> set[str]:
    found = set()
    for type_ in types_in(schema):
        if type_ == TIMESTAMP_NTZ:
            found.add("timestampNtz")
        elif type_ == VARIANT:
            raise SchemaError(
                "variants can be read here, but not written",
                hint="store the values as JSON text, or write the table with another engine",
            )
    return found
