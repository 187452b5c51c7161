"""A table at one version: its log segment, protocol and metadata. Nothing more has been read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from millpond.base.errors import CorruptLogError
from millpond.kernel.features import check_readable, mapping_mode
from millpond.kernel.mapping import TableColumns
from millpond.plan.types import Field, List, Map, Struct

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
            raise CorruptLogError(f"{self.table}: {error}", table=self.table) from error

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
        """Refuse what can't be read rightly."""
        if self.metadata.provider != "parquet":
            raise CorruptLogError(
                f"{self.table} holds {self.metadata.provider!r} files; only parquet is known",
                table=self.table,
            )
        names = [field.name.lower() for field in self.schema]
        if len(set(names)) < len(names):
            twice = sorted({n for n in names if names.count(n) > 1})
            raise CorruptLogError(
                f"the schema of {self.table} names columns twice: {', '.join(twice)}",
                table=self.table,
            )
        unknown = [name for name in self.partition_columns if name not in self.schema]
        if unknown:
            raise CorruptLogError(
                f"{self.table} is partitioned by {unknown[0]!r}, which its schema lacks",
                table=self.table,
            )
        check_readable(self.protocol, self.metadata, self.table)
        self.columns  # noqa: B018 - checks the mapping


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
