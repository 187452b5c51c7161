"""The protocol that a table needs for its schema and properties, and schemas made ready for it."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from millpond.kernel.actions import Protocol
from millpond.kernel.features import DELETION_VECTORS, V2_CHECKPOINT
from millpond.kernel.mapping import FIELD_ID, PHYSICAL_NAME
from millpond.plan.types import TIMESTAMP_NTZ, VARIANT, DataType, Field, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

MAPPING_MODE: Final = "delta.columnMapping.mode"
MAX_COLUMN_ID: Final = "delta.columnMapping.maxColumnId"
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
    ("delta.enableInCommitTimestamps", "true"): "inCommitTimestamp",
}
_LEGACY: Final = ("appendOnly", "invariants")


def needed_protocol(
    schema: Struct,
    configuration: Mapping[str, str],
    *,
    domains: bool = False,
    old: Protocol | None = None,
) -> Protocol:
    """The least protocol for these, that also keeps what an older one asks for."""
    reader, writer = set[str](), set[str]()
    if old is not None:
        reader, writer = _features(old)
    for (key, value), feature in _BOTH.items():
        if configuration.get(key, "").lower() == value:
            reader.add(feature)
    for (key, value), feature in _WRITER.items():
        if configuration.get(key, "").lower() == value:
            writer.add(feature)
    if domains:
        writer.add("domainMetadata")
    reader |= _of_types(schema)
    writer |= reader
    if old is not None and (reader, writer) == _features(old):
        return old
    if not reader and writer <= {"appendOnly"}:
        return Protocol(1, 2)
    listed = tuple(sorted(writer | {"invariants"} | ({"appendOnly"} & writer)))
    if not reader:
        return Protocol(1, 7, None, listed)
    return Protocol(3, 7, tuple(sorted(reader)), listed)


def _features(protocol: Protocol) -> tuple[set[str], set[str]]:
    reader = set(protocol.reader_features or ())
    writer = set(protocol.writer_features or ()) - {"invariants"}
    if protocol.min_reader_version == 2:
        reader.add("columnMapping")
    if protocol.writer_features is None:
        by_version = {4: "changeDataFeed", 5: "columnMapping"}
        writer |= {f for v, f in by_version.items() if v <= protocol.min_writer_version}
    return reader, writer | reader


def _of_types(schema: Struct) -> set[str]:
    found = set()
    todo: list[DataType] = [schema]
    while todo:
        type_ = todo.pop()
        if type_ == TIMESTAMP_NTZ:
            found.add("timestampNtz")
        elif type_ == VARIANT:
            found.add("variantType")
        elif isinstance(type_, Struct):
            todo.extend(field.type for field in type_)
        elif isinstance(type_, List):
            todo.append(type_.element)
        elif isinstance(type_, Map):
            todo.extend((type_.key, type_.value))
    return found


def mapped(schema: Struct, configuration: Mapping[str, str]) -> tuple[Struct, dict[str, str]]:
    """A schema in which every field has an id and a physical name, where the table maps columns."""
    found = dict(configuration)
    if found.get(MAPPING_MODE, "none") == "none":
        return schema, found
    numbers = [int(found.get(MAX_COLUMN_ID, 0)), *_ids(schema)]
    counter = [max(numbers)]
    made = _mapped(schema, counter)
    assert isinstance(made, Struct)
    found[MAX_COLUMN_ID] = str(counter[0])
    return made, found


def _ids(type_: DataType) -> list[int]:
    if isinstance(type_, Struct):
        own = [f.metadata_dict().get(FIELD_ID) for f in type_]
        return [i for i in own if isinstance(i, int)] + [i for f in type_ for i in _ids(f.type)]
    if isinstance(type_, List):
        return _ids(type_.element)
    return _ids(type_.key) + _ids(type_.value) if isinstance(type_, Map) else []


def _mapped(type_: DataType, counter: list[int]) -> DataType:
    if isinstance(type_, Struct):
        return Struct(tuple(_mapped_field(field, counter) for field in type_))
    if isinstance(type_, List):
        return replace(type_, element=_mapped(type_.element, counter))
    if isinstance(type_, Map):
        key, value = _mapped(type_.key, counter), _mapped(type_.value, counter)
        return replace(type_, key=key, value=value)
    return type_


def _mapped_field(field: Field, counter: list[int]) -> Field:
    known: dict[str, Any] = field.metadata_dict()
    if FIELD_ID not in known or PHYSICAL_NAME not in known:
        counter[0] += 1
        known = {**known, FIELD_ID: counter[0], PHYSICAL_NAME: f"col-{uuid.uuid4()}"}
    return replace(field, type=_mapped(field.type, counter)).with_metadata(known)
