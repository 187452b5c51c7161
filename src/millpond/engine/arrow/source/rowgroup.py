"""A row group of an open Parquet file: its columns, decoded when they are asked for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from millpond.engine.arrow.source.batch import batch_of
from millpond.engine.arrow.source.choice import Picked, choice_of
from millpond.engine.arrow.source.conform import conform
from millpond.engine.arrow.source.few import FewRows
from millpond.engine.arrow.source.files import damaged, unfit, unreadable
from millpond.engine.arrow.source.longtext import (
    TEXTS,
    LongTextError,
    TooLong,
    bisected,
)
from millpond.engine.arrow.source.merge import merge
from millpond.engine.arrow.source.sound import has_all_words, is_utf8
from millpond.engine.arrow.source.variant import BrokenVariant
from millpond.plan.arrow import to_arrow
from millpond.plan.types import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from millpond.base.errors import SourceError
    from millpond.engine.arrow.source.choice import Choice
    from millpond.engine.arrow.source.parquet import ParquetSource
    from millpond.plan.types import DataType, Field

# A damaged footer can hold names that are no UTF-8.
READ_ERRORS = (OSError, pa.ArrowException, UnicodeDecodeError)
_EARLY = 0.9
"""Rows that all stand before this share of a row group are read from its beginning only."""
PART_ROWS = 131_072
PART_BYTES = 64 << 20
"""Larger row groups that are given as a whole come in parts of so many rows, and not many more
bytes: what is decoded stays in the processor's caches, and in bounds."""
WHOLE_BYTES = 32 << 20
"""Up to so many they are read at once, which takes up to a tenth less time than parts."""


class RowGroup:
    """One row group: columns are decoded when they are asked for, and each leaf only once.

    Whoever asks for some rows asks for no others later, only for fewer: what stands behind the last
    of them is not decoded.
    """

    def __init__(self, source: ParquetSource, number: int) -> None:
        self.source = source
        self.number = number
        self.rows = int(source.group_rows[number])
        self._read: set[int] = set()
        self._raw: dict[str, pa.Array] = {}
        self._few = FewRows(source, number)
        self._counted: set[int] = set()

    def columns(
        self,
        wanted: Struct,
        rows: NDArray[np.int64] | None,
        texts: frozenset[str] = frozenset(),
    ) -> pa.RecordBatch:
        """These columns, of all rows or of the chosen ones; `texts` may stay dictionaries."""
        return self._columns(wanted, choice_of(rows, None, self.rows), texts)

    def _columns(
        self, wanted: Struct, choice: Choice | None, texts: frozenset[str]
    ) -> pa.RecordBatch:
        rows = choice.rows if isinstance(choice, Picked) else None
        picked = self._decode(self.source.select(wanted), rows, numbered=bool(texts))
        columns = self._chosen(self._raw, wanted, choice, self._few.names(picked))
        self._few.add_to(columns, picked)
        return self._batch(wanted, columns, choice, texts, self.rows)

    def parts(
        self,
        wanted: Struct,
        rows: NDArray[np.int64] | None,
        texts: frozenset[str] = frozenset(),
        *,
        gone: NDArray[np.int64] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The same a part at a time; nothing is kept, so that nothing can be asked for later.

        Either the chosen rows, or all but those that are gone.
        """
        leaves = list(self.source.select(wanted))
        row = self.source.row_bytes(self.number, leaves)
        size = min(PART_ROWS, max(1, int(PART_BYTES / max(row, 1))))
        is_small = self.rows < 2 * size or self.rows * row <= WHOLE_BYTES
        if self._read or not leaves or is_small:
            choice = choice_of(rows, gone, self.rows)
            yield from _whole_or_halves(
                lambda some: self._columns(wanted, some, texts), choice, self.rows
            )
            return
        start = 0
        parts = self.source.read_parts(self.number, leaves, size, numbered=bool(texts))
        while start < self.rows:
            try:
                columns = next(parts, None)
            except (*READ_ERRORS, ValueError) as error:  # ValueError: leaves of unlike lengths
                raise unreadable(self.source.path, error) from error
            if columns is None:
                raise self._too_short()
            raw: dict[str, pa.Array] = {}
            self._add(raw, columns)
            end = start + len(next(iter(raw.values())))
            self._count(leaves, 0)
            self.source.context.counters.add("rows_decoded", end - start)
            chosen, left_out = (
                None if some is None else _between(some, start, end) for some in (rows, gone)
            )
            choice = choice_of(chosen, left_out, end - start)
            if choice is None or choice.count:
                make = partial(self._part, raw, wanted, texts, end - start)
                yield from _whole_or_halves(make, choice, end - start)
            start = end

    def _part(
        self,
        raw: dict[str, pa.Array],
        wanted: Struct,
        texts: frozenset[str],
        every: int,
        choice: Choice | None,
    ) -> pa.RecordBatch:
        return self._batch(wanted, self._chosen(raw, wanted, choice), choice, texts, every)

    def _chosen(
        self,
        raw: dict[str, pa.Array],
        wanted: Struct,
        choice: Choice | None,
        picked: frozenset[str] = frozenset(),
    ) -> dict[str, pa.Array]:
        """What was decoded of these columns, of all rows or of the chosen ones.

        What is not wanted of them is not copied; nothing may be, where the rest was picked.
        """
        stored = self.source.in_file(wanted)
        if choice is None:
            return {name: raw[name] for name in stored.names if name in raw}
        found = {}
        for field in stored:
            array = raw.get(field.name)
            members = None if array is None else _members(array, field.type)
            if array is None or (members is None and field.name in picked):
                continue
            try:
                found[field.name] = choice.of(array if members is None else members)
            except IndexError as error:
                raise self._too_short() from error
        return found

    def _too_short(self) -> SourceError:
        message = f"a row group of {self.source.path} has fewer rows than its footer says"
        return damaged(self.source.path, message)

    def _batch(
        self,
        wanted: Struct,
        columns: dict[str, pa.Array],
        choice: Choice | None,
        texts: frozenset[str],
        every: int,
    ) -> pa.RecordBatch:
        constants = self.source.constants
        count = every if choice is None else choice.count
        arrays = []
        for field, stored in zip(wanted, self.source.in_file(wanted), strict=True):
            if field.name in constants:
                arrays.append(self.source.repeated(field, count))
            elif stored.name not in columns:
                arrays.append(pa.nulls(count, to_arrow(field.type)))
            else:
                array = columns[stored.name]
                stays = field.name in texts and at.is_dictionary(array.type)
                arrays.append(array if stays else self._conform(array, field, stored))
                if not field.nullable and array.null_count:
                    message = f"column {field.name} of {self.source.path} is null in some row"
                    raise damaged(self.source.path, message + ", and it never should be")
        if texts and arrays:
            return pa.RecordBatch.from_arrays(arrays, list(wanted.names))
        return batch_of(arrays, wanted, count)

    def _conform(self, array: pa.Array, field: Field, stored: Field) -> pa.Array:
        try:
            return conform(array, field.type, stored.type)
        except TooLong:
            raise LongTextError(self.source.path, field.name) from None
        except pa.ArrowInvalid as error:
            reason = f"holds what does not fit {field.type}: {error}"
            raise unfit(self.source.path, field.name, reason) from error
        except BrokenVariant as broken:
            message = f"column {field.name} of {self.source.path} holds a broken variant: {broken}"
            raise damaged(self.source.path, message) from None

    def texts(
        self,
        steps: tuple[str, ...],
        wanted: Struct,
        rows: NDArray[np.int64] | None,
        *,
        in_lists: bool = False,
    ) -> pa.Array | None:
        """A text column as few different texts and a number for each row; None if it has many.

        Or a column of lists of such texts.
        """
        if steps[0] in self.source.constants:
            return None
        self._decode(self.source.select(wanted), rows, numbered=True)
        steps = self.source.layout.steps(steps)
        array = self._raw.get(steps[0])
        for step in steps[1:]:
            if array is None or not at.is_struct(array.type):
                return None  # a map's value, say
            if array.type.get_field_index(step) < 0:
                return None
            array = pc.struct_field(array, step)
        if array is None or (in_lists and not at.is_list(array.type)):
            return None
        values = array.values if in_lists else array
        if not at.is_dictionary(values.type) or values.type.value_type not in TEXTS:
            return None
        return array if 4 * len(values.dictionary) < len(values) else None

    def _decode(
        self, leaves: tuple[int, ...], rows: NDArray[np.int64] | None, *, numbered: bool
    ) -> list[int]:
        """Decode what is not there yet; the leaves of which values were picked instead."""
        missing = [leaf for leaf in leaves if leaf not in self._read]
        picked = self._few.pick(missing, rows) if missing and rows is not None else []
        missing = [leaf for leaf in missing if leaf not in picked]
        if missing:
            self._decode_all(missing, rows, numbered=numbered)
        if rows is not None:
            self._count(picked, len(rows))
        return picked

    def _decode_all(
        self, missing: list[int], rows: NDArray[np.int64] | None, *, numbered: bool
    ) -> None:
        end = self.rows if rows is None else int(rows.max(initial=-1)) + 1
        until = end if 0 < end < _EARLY * self.rows else None
        try:
            columns = self.source.read(self.number, missing, until, numbered=numbered)
        except READ_ERRORS as error:
            raise unreadable(self.source.path, error) from error
        self._add(self._raw, columns)
        self._read.update(missing)
        self._count(missing, self.rows if until is None else until)

    def _add(self, raw: dict[str, pa.Array], columns: list[dict[str, pa.Array]]) -> None:
        """Put what was read beside what is there, member by member."""
        for some in columns:
            for name, array in some.items():
                if not has_all_words(array):
                    message = f"column {name} of {self.source.path} names texts that it has not"
                    raise damaged(self.source.path, message)
                if self.source.strict and not is_utf8(array):
                    message = f"column {name} of {self.source.path} holds text that is no UTF-8"
                    raise damaged(self.source.path, message)
                known = raw.get(name)
                if known is not None:
                    shared = min(len(known), len(array))
                    array = merge(known.slice(0, shared), array.slice(0, shared))
                raw[name] = array

    def _count(self, leaves: list[int], rows: int) -> None:
        leaves = [leaf for leaf in leaves if leaf not in self._counted]
        if not leaves:
            return
        chunks = self.source.metadata.row_group(self.number)
        counters = self.source.context.counters
        if not self._counted:
            counters.add("batches_decoded")
            counters.add("rows_decoded", rows)
            counters.add("columns_skipped", self.source.layout.leaf_count)
        self._counted.update(leaves)
        counters.add("columns_decoded", len(leaves))
        counters.add("columns_skipped", -len(leaves))
        counters.add("bytes_read", sum(chunks.column(i).total_compressed_size for i in leaves))


def _whole_or_halves(
    make: Callable[[Choice | None], pa.RecordBatch], choice: Choice | None, every: int
) -> Iterator[pa.RecordBatch]:
    """A batch of the chosen rows; some, where they have too much text for one."""
    try:
        batch = make(choice)
    except LongTextError:
        rows = np.arange(every) if choice is None else choice.rows
    else:
        yield batch
        return
    yield from (batch for _, batch in bisected(rows, lambda some: make(Picked(some))))


def _between(rows: NDArray[np.int64], start: int, end: int) -> NDArray[np.int64]:
    """Those of some rows that stand there, counted from its start."""
    first, last = np.searchsorted(rows, (start, end))
    return rows[first:last] - start


def _members(array: pa.Array, wanted: DataType) -> pa.Array | None:
    """A struct with its wanted members alone, other arrays as they are; None if it has none."""
    if not isinstance(wanted, Struct) or not at.is_struct(array.type) or array.offset:
        return array
    fields = list(array.type)
    kept = [i for i, field in enumerate(fields) if field.name in wanted]
    if len(kept) == len(fields):
        return array
    if not kept:
        return None
    return pa.Array.from_buffers(
        pa.struct([fields[i] for i in kept]),
        len(array),
        [array.buffers()[0]],
        array.null_count,
        children=[array.field(i) for i in kept],
    )
