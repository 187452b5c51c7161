"""An open Parquet file: its layout, what its statistics rule out, and its row groups' columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millpond.engine.arrow.source.bounds import ALL_NULL, Bounds, constant_bounds, leaf_bounds
from millpond.engine.arrow.source.conform import conform
from millpond.engine.arrow.source.files import local_path, unreadable
from millpond.engine.arrow.source.leaves import Layout
from millpond.engine.arrow.source.merge import merge
from millpond.engine.arrow.source.prune import may_hold
from millpond.plan.arrow import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from millpond.engine.arrow.context import Context
    from millpond.plan.bound import BoundExpr
    from millpond.plan.types import DataType, Struct

_READ_ERRORS = (OSError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class Constant:
    """The value of a column that a file does not hold itself."""

    value: Any
    type: DataType

    def repeat(self, rows: int) -> pa.Array:
        """This value, for so many rows."""
        return pa.repeat(pa.scalar(self.value, to_arrow(self.type)), rows)


class ParquetSource:
    """One open file. Reading counts what is decoded."""

    def __init__(self, path: str, constants: Mapping[str, Constant], context: Context) -> None:
        self.path = path
        self.constants = constants
        self.context = context
        self.file = context.files.open(path)
        try:
            # Ranges of remote objects are fetched ahead, together; local ones as they are needed.
            remote = local_path(path) is None
            self.parquet = pq.ParquetFile(
                self.file, pre_buffer=remote, coerce_int96_timestamp_unit="us"
            )
            self.metadata = self.parquet.metadata
            self.layout = Layout(path, self.parquet.schema_arrow, self.metadata.num_columns)
        except _READ_ERRORS as error:
            context.files.release(self.file)
            raise unreadable(path, error) from error
        context.counters.add("files_opened")

    def close(self) -> None:
        """Close the file."""
        self.parquet.close()
        self.context.files.release(self.file)

    @cached_property
    def group_rows(self) -> NDArray[np.int64]:
        """How many rows each row group has; they need not be alike."""
        groups = range(self.metadata.num_row_groups)
        return np.array([self.metadata.row_group(g).num_rows for g in groups], np.int64)

    @cached_property
    def group_starts(self) -> NDArray[np.int64]:
        """The position of each row group's first row, and at last the number of rows."""
        return np.concatenate([[0], np.cumsum(self.group_rows)])

    def may_hold(self, group: int, predicates: Iterable[BoundExpr]) -> bool:
        """Whether some row of a row group may satisfy all predicates, as statistics tell."""
        cache: dict[tuple[str, ...], Bounds | None] = {}
        chunks = self.metadata.row_group(group)

        def lookup(steps: tuple[str, ...], type_: DataType) -> Bounds | None:
            if steps not in cache:
                cache[steps] = self._bounds(chunks, steps, type_)
            return cache[steps]

        return all(may_hold(predicate, lookup) for predicate in predicates)

    def _bounds(self, chunks: Any, steps: tuple[str, ...], type_: DataType) -> Bounds | None:
        constant = self.constants.get(steps[0])
        if constant is not None:
            return constant_bounds(constant.value, type_) if len(steps) == 1 else None
        if not self.layout.has(steps):
            return ALL_NULL
        leaf = self.layout.leaf(steps)
        if leaf is None:
            return None
        logical = self.metadata.schema.column(leaf).logical_type
        found = leaf_bounds(chunks.column(leaf), logical, type_)
        return found.with_nulls() if self.layout.passes_map(steps) else found

    def group(self, number: int) -> RowGroup:
        """A row group; nothing of it is read yet."""
        return RowGroup(self, number)


class RowGroup:
    """One row group: columns are decoded when they are asked for, and each leaf only once."""

    def __init__(self, source: ParquetSource, number: int) -> None:
        self.source = source
        self.number = number
        self.rows = int(source.group_rows[number])
        self._read: set[int] = set()
        self._raw: dict[str, pa.Array] = {}

    def columns(self, wanted: Struct, rows: NDArray[np.int64] | None) -> pa.RecordBatch:
        """These columns, of all rows or of the chosen ones."""
        constants = self.source.constants
        from_file = [field for field in wanted if field.name not in constants]
        self._decode(self.source.layout.select(type(wanted)(tuple(from_file))))
        count = self.rows if rows is None else len(rows)
        chosen = None if rows is None else pa.array(rows)
        arrays = []
        for field in wanted:
            if field.name in constants:
                arrays.append(constants[field.name].repeat(count))
            elif field.name not in self._raw:
                arrays.append(pa.nulls(count, to_arrow(field.type)))
            else:
                array = conform(self._raw[field.name], field.type)
                arrays.append(array if chosen is None else array.take(chosen))
        return batch_of(arrays, wanted, count)

    def _decode(self, leaves: tuple[int, ...]) -> None:
        missing = [leaf for leaf in leaves if leaf not in self._read]
        if not missing:
            return
        source, counters = self.source, self.source.context.counters
        try:
            table = source.parquet.reader.read_row_group(
                self.number, column_indices=missing, use_threads=False
            )
        except _READ_ERRORS as error:
            raise unreadable(source.path, error) from error
        for name, column in zip(table.column_names, table.columns, strict=True):
            array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            known = self._raw.get(name)
            self._raw[name] = array if known is None else merge(known, array)
        self._count(missing, counters)

    def _count(self, leaves: list[int], counters: Any) -> None:
        chunks = self.source.metadata.row_group(self.number)
        if not self._read:
            counters.add("batches_decoded")
            counters.add("rows_decoded", self.rows)
            counters.add("columns_skipped", self.source.layout.leaf_count)
        self._read.update(leaves)
        counters.add("columns_decoded", len(leaves))
        counters.add("columns_skipped", -len(leaves))
        counters.add("bytes_read", sum(chunks.column(i).total_compressed_size for i in leaves))


def batch_of(arrays: list[pa.Array], schema: Struct, rows: int) -> pa.RecordBatch:
    """A batch of these columns; one without columns still has its rows."""
    from millpond.plan.arrow import to_arrow_schema

    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(schema))
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None], 0))
