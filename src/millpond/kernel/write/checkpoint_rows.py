"""The rows of a checkpoint: adds with statistics and partition values as columns, then removes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernel.actions import ADD, REMOVE
from millpond.kernel.data import partition_arrays
from millpond.kernel.write.state import Tombstones, live_adds
from millpond.kernel.write.stats import indexed_leaves
from millpond.plan.arrow import to_arrow
from millpond.plan.make import values
from millpond.plan.rows import ParseJson
from millpond.plan.types import BOOLEAN, LONG, DataType, Field, Struct, is_fractional

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millpond.kernel.snapshot import Snapshot
    from millpond.plan.executor import Executor

STATS_AS_STRUCT: Final = "delta.checkpoint.writeStatsAsStruct"
STATS_AS_JSON: Final = "delta.checkpoint.writeStatsAsJson"


@dataclass
class FileRows:
    """Adds and removes of a snapshot as rows of a checkpoint; they are counted as they stream."""

    snapshot: Snapshot
    engine: str | Executor
    adds: int = field(default=0, init=False)
    removes: int = field(default=0, init=False)
    file_bytes: int = field(default=0, init=False)

    @cached_property
    def parsed_type(self) -> Struct | None:
        """The shape of statistics as columns, if the table wants them so."""
        wanted = _property(self.snapshot, STATS_AS_STRUCT, "false") == "true"
        return stats_type(self.snapshot) if wanted else None

    @cached_property
    def values_type(self) -> Struct | None:
        """The shape of partition values as columns, beside such statistics."""
        if self.parsed_type is None or not self.snapshot.partition_columns:
            return None
        columns = self.snapshot.columns
        fields = [columns.schema.field(name) for name in self.snapshot.partition_columns]
        return Struct(tuple(Field(columns.physical_name(f), f.type) for f in fields))

    @cached_property
    def add_type(self) -> Struct:
        """An add action as this checkpoint holds it."""
        fields = list(ADD.fields)
        if self.values_type is not None:
            fields.append(Field("partitionValues_parsed", self.values_type))
        if self.parsed_type is not None:
            fields.append(Field("stats_parsed", self.parsed_type))
        return Struct(tuple(fields))

    @property
    def has_json(self) -> bool:
        """Whether statistics are there as text; they are where they would not be there at all."""
        wanted = _property(self.snapshot, STATS_AS_JSON, "true") != "false"
        return wanted or self.parsed_type is None

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Adds, then removes, in the columns of a schema."""
        known = (
            None if self.has_json or self.snapshot.segment.checkpoint is None else self.parsed_type
        )
        for batch in live_adds(self.snapshot, self.engine, known):
            self.adds += batch.num_rows
            self.file_bytes += pc.sum(batch.column("size")).as_py() or 0
            yield _aligned(pa.table([self._add(batch)], names=["add"]), schema)
        for batch in Tombstones.kept(self.snapshot).batches(self.engine):
            self.removes += batch.num_rows
            # Arrow's own names of inner fields may differ, so the column is made anew.
            rows = pa.table([batch.column("remove").cast(to_arrow(REMOVE))], names=["remove"])
            yield _aligned(rows, schema)

    def _add(self, batch: pa.RecordBatch) -> pa.StructArray:
        columns: dict[str, Any] = {name: batch.column(name) for name in batch.schema.names}
        columns["dataChange"] = pa.repeat(pa.scalar(False), batch.num_rows)
        if self.parsed_type is not None:
            known = columns.get("stats_parsed")
            columns["stats_parsed"] = _parsed(batch.column("stats"), self.parsed_type, known)
        if self.values_type is not None:
            texts = pa.chunked_array([batch.column("partitionValues")])
            arrays = [_plain(c) for c in partition_arrays(self.snapshot, texts).values()]
            fields = list(to_arrow(self.values_type))
            columns["partitionValues_parsed"] = pa.StructArray.from_arrays(arrays, fields=fields)
        if not self.has_json:
            columns["stats"] = pa.nulls(batch.num_rows, pa.string())
        arrays = [_plain(columns[f.name]) for f in self.add_type]
        return pa.StructArray.from_arrays(arrays, fields=list(to_arrow(self.add_type)))


def grouped(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of exactly so many; the last one may have fewer."""
    held: list[pa.Table] = []
    count = 0
    for table in tables:
        start = 0
        while start < table.num_rows:
            part = table.slice(start, rows - count)
            held.append(part)
            start += part.num_rows
            count += part.num_rows
            if count == rows:
                yield pa.concat_tables(held)
                held, count = [], 0
    if held:
        yield pa.concat_tables(held)


def stats_type(snapshot: Snapshot) -> Struct:
    """The shape of statistics that the table's files may have, by physical names."""
    configuration = snapshot.metadata.configuration
    leaves = indexed_leaves(snapshot.columns, snapshot.partition_columns, configuration)
    bounded = _tree([(leaf.path, leaf.type) for leaf in leaves if leaf.has_bounds])
    parts = {
        "minValues": bounded,
        "maxValues": bounded,
        "nullCount": _tree([(leaf.path, LONG) for leaf in leaves]),
        "nanCount": _tree([(leaf.path, LONG) for leaf in leaves if is_fractional(leaf.type)]),
    }
    fields = [Field(name, type_) for name, type_ in parts.items() if type_ is not None]
    return Struct((Field("numRecords", LONG), *fields, Field("tightBounds", BOOLEAN)))


def _tree(leaves: list[tuple[tuple[str, ...], DataType]]) -> Struct | None:
    below: dict[str, list[tuple[tuple[str, ...], DataType]]] = {}
    for path, type_ in leaves:
        below.setdefault(path[0], []).append((path[1:], type_))
    fields = []
    for name, inner in below.items():
        nested = inner[0][1] if not inner[0][0] else _tree(inner)
        assert nested is not None
        fields.append(Field(name, nested))
    return Struct(tuple(fields)) if fields else None


def _parsed(texts: pa.Array, type_: Struct, known: pa.Array | None) -> pa.Array:
    """Statistics from their texts; where there is none, those that were columns before."""
    rows = ParseJson(values(pa.table({"stats": texts})), "stats", type_, "parsed")
    found = _plain(rows.to_arrow(engine="arrow").column("parsed"))
    return found if known is None else pc.if_else(texts.is_null(), known, found)


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _aligned(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with some columns as rows with all columns."""
    columns = [
        table.column(f.name) if f.name in table.schema.names else pa.nulls(table.num_rows, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _property(snapshot: Snapshot, key: str, default: str = "") -> str:
    return snapshot.metadata.configuration.get(key, default).lower()
