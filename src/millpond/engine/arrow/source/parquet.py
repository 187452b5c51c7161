"""An open Parquet file: its layout, what its statistics rule out, and its row groups' columns."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millpond.base.seals import BrokenSealError, mark_in
from millpond.engine.arrow.source.bounds import ALL_NULL, Bounds, constant_bounds, leaf_bounds
from millpond.engine.arrow.source.calendar import OldCalendar
from millpond.engine.arrow.source.checked import CheckedSeal
from millpond.engine.arrow.source.described import open_parquet, reader_of
from millpond.engine.arrow.source.entry import repeated
from millpond.engine.arrow.source.files import local_path, not_as_written, unfit, unreadable
from millpond.engine.arrow.source.leaves import Layout
from millpond.engine.arrow.source.longtext import joined
from millpond.engine.arrow.source.misfit import Misfit
from millpond.engine.arrow.source.nulls import without_nulls
from millpond.engine.arrow.source.pages import PAGE_ERRORS
from millpond.engine.arrow.source.prune import may_hold
from millpond.engine.arrow.source.rowgroup import READ_ERRORS, RowGroup
from millpond.engine.arrow.source.storedleaves import StoredLeaves
from millpond.engine.arrow.source.variant import check_times
from millpond.plan.paths import Name
from millpond.plan.types import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.source.entry import Entry
    from millpond.engine.arrow.source.spec import ScanSpec
    from millpond.plan.bound import BoundExpr, BoundPath
    from millpond.plan.types import DataType, Field

_USUAL_TEXT, _USUAL_NUMBER = 32, 8
"""Bytes of decoded values, where a file takes fewer."""


class ParquetSource:
    """One open file. Reading counts what is decoded."""

    def __init__(
        self,
        path: str,
        constants: Mapping[str, Any],
        context: Context,
        columns: Struct | None = None,
        *,
        strict: bool = False,
    ) -> None:
        self.path = path
        self.strict = strict
        self.constants = constants
        self.context = context
        self.file = context.files.open(path)
        try:
            self.parquet, seal = open_parquet(
                self.file, remote=self._is_remote, required=mark_in(path)
            )
            self.metadata = self.parquet.metadata
            schema = self.parquet.schema_arrow
            self._calendar = OldCalendar.of(self.metadata, path, columns)
            self.layout = Layout(path, schema, self.metadata.num_columns, columns)
        except BrokenSealError as error:
            context.files.release(self.file)
            raise not_as_written(path, str(error)) from error
        except READ_ERRORS as error:
            context.files.release(self.file)
            raise unreadable(path, error) from error
        context.counters.add("files_opened")
        if columns is not None and self.metadata.num_rows:
            own = Struct(tuple(field for field in columns if field.name not in constants))
            self.layout.require(own)
        # Of remote files, pyarrow fetches what it needs ahead, together; old dates are shifted.
        by_pages = not self._is_remote and self._calendar is None
        # Of remote files, the checksums of pages are verified, as pyarrow fetches them.
        self.seal = (
            None if seal is None or self._is_remote else CheckedSeal(path, self.metadata, seal)
        )
        self.stored = StoredLeaves(
            self.metadata, self.layout, context.library if by_pages else None, self.seal
        )
        self._selected: dict[int, tuple[int, ...]] = {}
        self._in_file: dict[int, Struct] = {}
        self._repeated: dict[tuple[str, DataType], pa.Array] = {}
        self._wanted: list[Struct] = []  # kept, so that no other struct gets its id

    @classmethod
    def of(cls, entry: Entry, spec: ScanSpec, context: Context) -> ParquetSource:
        """A file of a scan."""
        return cls(entry.path, entry.constants, context, spec.columns, strict=spec.strict)

    def twin(self) -> ParquetSource:
        """Another reader of the file, for another thread; what is known of the file is shared."""
        twin = copy(self)
        vars(twin).pop("_dictionaries", None)
        twin.file = self.context.files.open(self.path)
        try:
            twin.parquet = self._reader(twin.file)
        except READ_ERRORS as error:
            self.context.files.release(twin.file)
            raise unreadable(self.path, error) from error
        return twin

    def _reader(self, file: pa.NativeFile, dictionaries: list[str] | None = None) -> pq.ParquetFile:
        return reader_of(
            file,
            metadata=self.metadata,
            remote=self._is_remote,
            seal=None if self.seal is None else self.seal.seal,
            dictionaries=dictionaries,
        )

    @property
    def _is_remote(self) -> bool:
        return local_path(self.path) is None

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

    def bounds(self, group: int, path: BoundPath) -> Bounds | None:
        """What statistics say about a path of names in a row group; None is nothing."""
        names = tuple(step.name for step in path.steps if isinstance(step, Name))
        if len(names) < len(path.steps):
            return None
        return self._bounds(self.metadata.row_group(group), names, path.type)

    def _bounds(self, chunks: Any, steps: tuple[str, ...], type_: DataType) -> Bounds | None:
        if steps[0] in self.constants:
            value = self.constants[steps[0]]
            return constant_bounds(value, type_) if len(steps) == 1 else None
        steps = self.layout.steps(steps)
        if self.layout.lacks(steps):
            return ALL_NULL
        leaf = self.layout.leaf(steps)
        if leaf is None:
            return None
        column = self.metadata.schema.column(leaf)
        found = leaf_bounds(chunks.column(leaf), column, type_, self.path)
        if self._calendar is not None:
            found = self._calendar.bounds(found, type_)
        return found.with_nulls() if self.layout.passes_map(steps) else found

    def select(self, wanted: Struct) -> tuple[int, ...]:
        """The leaves that hold these columns."""
        found = self._selected.get(id(wanted))
        if found is None:
            own = Struct(tuple(field for field in wanted if field.name not in self.constants))
            leaves = self.layout.select(own)
            try:
                check_times(own, map(self.metadata.schema.column, leaves))
            except Misfit as misfit:
                raise unfit(self.path, misfit.column, misfit.reason) from None
            self._in_file[id(wanted)] = self.layout.in_file(wanted)
            self._wanted.append(wanted)
            # At last: another thread that finds it takes all the rest for granted.
            found = self._selected[id(wanted)] = leaves
        return found

    def in_file(self, wanted: Struct) -> Struct:
        """These columns, which were selected before, under their names in this file."""
        return self._in_file[id(wanted)]

    def repeated(self, field: Field, rows: int) -> pa.Array:
        """A constant for so many rows; batches share it."""
        key = (field.name, field.type)  # of a struct, conditions may want some members alone
        known = self._repeated.get(key)
        if known is None or len(known) < rows:
            value = self.constants[field.name]
            known = self._repeated[key] = repeated(value, field.type, rows)
        return known.slice(0, rows)

    def read(
        self, group: int, leaves: list[int], until: int | None, *, numbered: bool = True
    ) -> list[dict[str, pa.Array]]:
        """Leaves of a row group, some at a time; texts that repeat may come as dictionaries."""
        rows = int(self.group_rows[group])
        share = 1.0 if until is None else until / rows
        found, rest = [], []
        for leaf in leaves:
            column = self._from_pages(group, leaf, until or rows, numbered=numbered, share=share)
            found.append(column) if column else rest.append(leaf)
        readers = self._readers(group, rest, share)
        tables = (self._dated(_read(reader, group, some, until), some) for reader, some in readers)
        return found + [_columns(table) for table in tables]

    def _from_pages(
        self, group: int, leaf: int, rows: int, *, numbered: bool, share: float
    ) -> dict[str, pa.Array] | None:
        """A leaf's first rows out of its pages; None if pyarrow has to read them."""
        chunk = self.stored.chunk(self.file, group, leaf)
        if chunk is None:
            return None
        try:
            column = chunk.next(rows, numbered=numbered and self.stored.repeat(leaf, share))
        except PAGE_ERRORS:
            return None
        return {chunk.leaf.steps[0]: column}

    def _dated(self, table: pa.Table, leaves: list[int]) -> pa.Table:
        """What was read, with dates and timestamps by today's calendar."""
        if self._calendar is None:
            return table
        return self._calendar.table(table, [self.metadata.schema.column(i) for i in sorted(leaves)])

    def read_parts(
        self, group: int, leaves: list[int], size: int, *, numbered: bool = True
    ) -> Iterator[list[dict[str, pa.Array]]]:
        """The same of all rows, so many at a time."""
        chunks = {
            leaf: chunk
            for leaf in leaves
            if (chunk := self.stored.chunk(self.file, group, leaf)) and chunk.fits(size)
        }
        readers = self._readers(group, [leaf for leaf in leaves if leaf not in chunks])
        parts = [
            reader.iter_batches(size, row_groups=[group], column_indices=some, use_threads=False)
            for reader, some in readers
        ]
        left = int(self.group_rows[group])
        for batches in zip(*parts, strict=True) if parts else repeat(()):
            rows = batches[0].num_rows if batches else min(size, left)
            left -= rows
            found = [
                _columns(self._dated(pa.Table.from_batches([batch]), some))
                for batch, (_, some) in zip(batches, readers, strict=True)
            ]
            for leaf, chunk in chunks.items():
                few = numbered and self.stored.repeat(leaf)
                found.append({chunk.leaf.steps[0]: chunk.next(rows, numbered=few)})
            yield found

    def row_bytes(self, group: int, leaves: list[int]) -> float:
        """How much a row of these leaves takes, as far as the footer tells."""
        chunks, rows = self.metadata.row_group(group), max(int(self.group_rows[group]), 1)
        return sum(_bytes_per_row(chunks.column(leaf), rows) for leaf in leaves)

    def _readers(
        self, group: int, leaves: list[int], share: float = 1.0
    ) -> list[tuple[Any, list[int]]]:
        """Which of two readers is to read which leaves of a row group, which are checked."""
        if self.seal is not None and leaves:
            self.seal.check(self.file, group, leaves)
        texts = [leaf for leaf in leaves if self.stored.repeat(leaf, share)]
        for whole in self.layout.together:
            if not set(whole) <= set(texts):
                texts = [leaf for leaf in texts if leaf not in whole]
        rest = [leaf for leaf in leaves if leaf not in texts]
        found = [(self._dictionaries.reader, texts)] if texts else []
        return found + ([(self.parquet.reader, rest)] if rest else [])

    @cached_property
    def _dictionaries(self) -> pq.ParquetFile:
        """A second reader of the file, which gives texts as dictionaries."""
        columns = (self.metadata.schema.column(i) for i in range(self.metadata.num_columns))
        texts = [c.path for c in columns if c.physical_type == "BYTE_ARRAY"]
        return self._reader(self.file, texts)

    def group(self, number: int) -> RowGroup:
        """A row group; nothing of it is read yet."""
        return RowGroup(self, number)


def _read(reader: Any, group: int, leaves: list[int], until: int | None) -> pa.Table:
    """Leaves of a row group, of all its rows or of the first ones."""
    if until is None:
        return reader.read_row_group(group, column_indices=leaves, use_threads=False)
    batches = reader.iter_batches(
        until, row_groups=[group], column_indices=leaves, use_threads=False
    )
    return pa.Table.from_batches([next(batches)])


def _columns(table: pa.Table) -> dict[str, pa.Array]:
    return {
        name: without_nulls(joined(column))
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def _bytes_per_row(chunk: Any, rows: int) -> float:
    """What a leaf takes when it is decoded: numbers of a dictionary take less in the file."""
    least = _USUAL_TEXT if chunk.physical_type == "BYTE_ARRAY" else _USUAL_NUMBER
    return max(float(chunk.total_uncompressed_size / rows), least)
