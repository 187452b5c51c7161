"""The actions of a Delta log: their shapes as plan types, and those that a snapshot keeps.

Log files are scanned with these types, so that rows stay in Arrow; only protocol, metadata, app
transactions and domains become Python objects, of which there are few.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import MillpondError
from millpond.plan.typejson import schema_from_json
from millpond.plan.types import (
    BOOLEAN,
    INTEGER,
    LONG,
    STRING,
    Field,
    List,
    Map,
    Struct,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXTS: Final = Map(STRING, STRING)

DELETION_VECTOR: Final = Struct.of(
    storageType=STRING,
    pathOrInlineDv=STRING,
    offset=INTEGER,
    sizeInBytes=INTEGER,
    cardinality=LONG,
)
ADD: Final = Struct.of(
    path=STRING,
    partitionValues=TEXTS,
    size=LONG,
    modificationTime=LONG,
    dataChange=BOOLEAN,
    stats=STRING,
    tags=TEXTS,
    deletionVector=DELETION_VECTOR,
    baseRowId=LONG,
    defaultRowCommitVersion=LONG,
    clusteringProvider=STRING,
)
REMOVE: Final = Struct.of(
    path=STRING,
    deletionTimestamp=LONG,
    dataChange=BOOLEAN,
    extendedFileMetadata=BOOLEAN,
    partitionValues=TEXTS,
    size=LONG,
    stats=STRING,
    tags=TEXTS,
    deletionVector=DELETION_VECTOR,
    baseRowId=LONG,
    defaultRowCommitVersion=LONG,
)
CDC: Final = Struct.of(
    path=STRING, partitionValues=TEXTS, size=LONG, dataChange=BOOLEAN, tags=TEXTS
)
PROTOCOL: Final = Struct.of(
    minReaderVersion=INTEGER,
    minWriterVersion=INTEGER,
    readerFeatures=List(STRING),
    writerFeatures=List(STRING),
)
METADATA: Final = Struct.of(
    id=STRING,
    name=STRING,
    description=STRING,
    format=Struct.of(provider=STRING, options=TEXTS),
    schemaString=STRING,
    partitionColumns=List(STRING),
    configuration=TEXTS,
    createdTime=LONG,
)
TXN: Final = Struct.of(appId=STRING, version=LONG, lastUpdated=LONG)
DOMAIN: Final = Struct.of(domain=STRING, configuration=STRING, removed=BOOLEAN)
SIDECAR: Final = Struct.of(path=STRING, sizeInBytes=LONG, modificationTime=LONG, tags=TEXTS)
CHECKPOINT_METADATA: Final = Struct.of(version=LONG, tags=TEXTS)


def picked(action: Struct, *names: str) -> Struct:
    """Only these members of an action: nothing else of it is decoded."""
    return action.select(names)


def log_columns(**actions: Struct) -> Struct:
    """The columns of a scan of log files: some actions, or parts of them."""
    return Struct(tuple(Field(name, type_) for name, type_ in actions.items()))


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a reader and a writer have to know."""

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Protocol:
        """From an action; raises ValueError when a number is missing."""
        numbers = []
        for name in ("minReaderVersion", "minWriterVersion"):
            value = data.get(name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{name} is {value!r}, not a version")
            numbers.append(value)
        features = (_texts(data, "readerFeatures"), _texts(data, "writerFeatures"))
        return cls(numbers[0], numbers[1], *features)

    def to_dict(self) -> dict[str, Any]:
        """As it stands in a commit."""
        found: dict[str, Any] = {
            "minReaderVersion": self.min_reader_version,
            "minWriterVersion": self.min_writer_version,
        }
        if self.reader_features is not None:
            found["readerFeatures"] = list(self.reader_features)
        if self.writer_features is not None:
            found["writerFeatures"] = list(self.writer_features)
        return found

    def reads(self, feature: str) -> bool:
        """Whether readers have to know a feature."""
        return self.reader_features is not None and feature in self.reader_features

    def writes(self, feature: str) -> bool:
        """Whether writers have to know a feature that is listed by name."""
        return self.writer_features is not None and feature in self.writer_features


@dataclass(frozen=True, slots=True)
class Metadata:
    """The table itself: its schema, its partition columns, its properties."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    provider: str = "parquet"
    format_options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Metadata:
        """From an action; raises ValueError when a part that matters is missing."""
        for name in ("schemaString", "partitionColumns", "configuration"):
            if data.get(name) is None:  # rows would be read wrongly without it
                raise ValueError(f"{name} is missing")
        schema = data["schemaString"]
        if not isinstance(schema, str):
            raise ValueError(f"schemaString is {schema!r}, not a text")
        format_ = data.get("format") or {}
        columns = _texts(data, "partitionColumns")
        return cls(
            id=str(data.get("id") or ""),
            schema_string=schema,
            partition_columns=columns or (),
            configuration=_pairs(data.get("configuration"), "configuration"),
            name=data.get("name"),
            description=data.get("description"),
            created_time=data.get("createdTime"),
            provider=format_.get("provider") or "parquet",
            format_options=_pairs(format_.get("options"), "format.options"),
        )

    def to_dict(self) -> dict[str, Any]:
        """As it stands in a commit."""
        found: dict[str, Any] = {
            "id": self.id,
            "format": {"provider": self.provider, "options": dict(self.format_options)},
            "schemaString": self.schema_string,
            "partitionColumns": list(self.partition_columns),
            "configuration": dict(self.configuration),
        }
        optional = {
            "name": self.name,
            "description": self.description,
            "createdTime": self.created_time,
        }
        return found | {name: value for name, value in optional.items() if value is not None}

    @property
    def schema(self) -> Struct:
        """The logical schema; each field keeps its Delta metadata."""
        try:
            return schema_from_json(self.schema_string)
        except MillpondError as error:
            raise ValueError(error.message) from error


@dataclass(frozen=True, slots=True)
class AppTransaction:
    """How far an application has written: its own version number."""

    app_id: str
    version: int
    last_updated: int | None = None


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """A named configuration beside the table's own."""

    domain: str
    configuration: str
    removed: bool = False


def json_line(kind: str, action: Mapping[str, Any]) -> bytes:
    """One line of a commit."""
    text = json.dumps({kind: dict(action)}, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


def _texts(data: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    found = data.get(name)
    if found is None:
        return None
    if not isinstance(found, list | tuple) or not all(isinstance(item, str) for item in found):
        raise ValueError(f"{name} is {found!r}, not a list of texts")
    return tuple(found)


def _pairs(found: Any, name: str) -> dict[str, str]:
    """A map as Arrow gives it (pairs), or as JSON does."""
    if found is None:
        return {}
    pairs = found.items() if isinstance(found, dict) else found
    try:
        made = {str(key): value for key, value in pairs if value is not None}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is {found!r}, not a map") from error
    if not all(isinstance(value, str) for value in made.values()):
        raise ValueError(f"{name} is {found!r}, not a map of texts")
    return made
