"""Texts that were picked out of a row group for few of its rows, beside what was decoded of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millpond.engine.arrow.source.files import local_path
from millpond.engine.arrow.source.merge import merge
from millpond.engine.arrow.source.pages import has_nulls, pick

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from millpond.engine.arrow.source.parquet import ParquetSource

_SHARE = 8
"""Texts of at most an eighth of the rows are picked; of more, decoding all is not much dearer."""


class FewTexts:
    """The texts of few rows of one row group, by leaf."""

    def __init__(self, source: ParquetSource, number: int) -> None:
        self._source = source
        self._number = number
        self._picked: dict[int, tuple[NDArray[np.int64], pa.Array]] = {}

    def pick(self, leaves: list[int], rows: NDArray[np.int64]) -> list[int]:
        """Pick what can be picked; which leaves those are."""
        source = self._source
        few = 0 < len(rows) <= source.group_rows[self._number] // _SHARE
        if not few or source.strict or local_path(source.path) is None:
            return []
        return [leaf for leaf in leaves if self._has(leaf, rows) or self._pick(leaf, rows)]

    def _has(self, leaf: int, rows: NDArray[np.int64]) -> bool:
        """Whether the texts of these rows are there; those of other rows are left out then."""
        if leaf not in self._picked:
            return False
        known, texts = self._picked[leaf]
        if known is rows:
            return True
        at = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        if not np.array_equal(known[at], rows):
            return False
        self._picked[leaf] = rows, texts.take(pa.array(at))
        return True

    def _pick(self, leaf: int, rows: NDArray[np.int64]) -> bool:
        source = self._source
        kind = source.text_leaf(leaf)
        if kind is None:
            return False
        chunk = source.metadata.row_group(self._number).column(leaf)
        if has_nulls(chunk):
            return False
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        try:
            stored = memoryview(source.file.read_at(chunk.total_compressed_size, start))
        except (OSError, ValueError):  # pyarrow will say what is wrong
            return False
        texts = pick(stored, kind, chunk.compression, rows)
        if texts is not None:
            self._picked[leaf] = rows, texts
        return texts is not None

    def names(self, leaves: list[int]) -> frozenset[str]:
        """The columns to which picked texts belong."""
        kinds = (self._source.text_leaf(leaf) for leaf in leaves)
        return frozenset(kind.steps[0] for kind in kinds if kind is not None)

    def add_to(self, columns: dict[str, pa.Array], leaves: list[int]) -> None:
        """Put picked texts where they belong, among columns of the same rows."""
        for leaf in leaves:
            kind, (_, array) = self._source.text_leaf(leaf), self._picked[leaf]
            assert kind is not None
            name, *members = kind.steps
            for member in reversed(members):
                array = pa.StructArray.from_arrays([array], [member])
            known = columns.get(name)
            columns[name] = array if known is None else merge(known, array)
