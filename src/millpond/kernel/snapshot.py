"""A table at one version: its log segment, protocol and metadata. Nothing more has been read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from millpond.base.errors import CorruptLogError
from millpond.kernel.features import check_metadata, check_protocol, mapping_mode
from millpond.kernel.mapping import TableColumns
from millpond.plan.types import Field, List, Map, Struct, types_in

if TYPE_CHECKING:
    from millpond.kernel.actions import Metadata, Protocol
    from millpond.kernel.segment import LogSegment
    from millpond.plan.types import DataType


@dataclass(frozen=True)
class Snapshot:
    """One version of a table; frozen, cheap, and good for any number of scans."""

    segment: LogSegment
    protocol: Protocol
    metadata: Metadata

    @property
    def table(self) -> str:
        """Where the table is."""
        return self.segment.table

    @property
    def version(self) -> int:
        """The version."""
        return self.segment.version

    @cached_property
    def schema(self) -> Struct:
        """The logical schema, with Delta's field metadata."""
        try:
            return self.metadata.schema
        except ValueError as error:
            raise self._broken(f"has a schema that can't be read: {error}") from error

    @cached_property
    def plain_schema(self) -> Struct:
        """The logical schema's names and types alone."""
        return without_metadata(self.schema)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The logical names of the partition columns."""
        return self.metadata.partition_columns

    @cached_property
    def mapping_mode(self) -> str:
        """How columns are found in files: `none`, `name` or `id`."""
        return mapping_mode(self.protocol, self.metadata)

    @cached_property
    def columns(self) -> TableColumns:
        """The schema together with how files name its columns."""
        return TableColumns.of(self.schema, self.mapping_mode, table=self.table)

    def check_readable(self) -> None:
        """Refuse what can't be read rightly. The protocol comes first: it may bring new types."""
        check_protocol(self.protocol, self.table)
        if self.metadata.provider != "parquet":
            raise self._broken(f"holds {self.metadata.provider!r} files; only parquet is known")
        twice = named_twice(self.schema)
        if twice is not None:
            raise self._broken(f"has a schema that names {twice!r} twice, but for upper case")
        for name in self.partition_columns:
            if name not in self.schema:
                raise self._broken(f"is partitioned by {name!r}, which its schema lacks")
        check_metadata(self.protocol, self.metadata, self.schema, self.table)
        self.columns  # noqa: B018 - checks the mapping

    def _broken(self, problem: str) -> CorruptLogError:
        return CorruptLogError(
            f"{self.table} {problem}",
            table=self.table,
            hint="an older version may still be readable",
        )


def without_metadata(schema: Struct) -> Struct:
    """A schema's names and types alone."""
    found = _plain(schema)
    assert isinstance(found, Struct)
    return found


def _plain(type_: DataType) -> DataType:
    if isinstance(type_, Struct):
        return Struct(tuple(Field(f.name, _plain(f.type), f.nullable) for f in type_))
    if isinstance(type_, List):
        return List(_plain(type_.element), type_.contains_null)
    if isinstance(type_, Map):
        return Map(_plain(type_.key), _plain(type_.value), type_.contains_null)
    return type_


def named_twice(schema: Struct) -> str | None:
    """A name that some struct of a schema has twice, if case is left aside."""
    for type_ in types_in(schema):
        taken: set[str] = set()
        for field in type_ if isinstance(type_, Struct) else ():
            if field.name.lower() in taken:
                return field.name
            taken.add(field.name.lower())
    return None
