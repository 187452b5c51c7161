"""Values that were picked out of a row group for few of its rows, beside what was decoded of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millpond.engine.arrow.source.merge import merge
from millpond.engine.arrow.source.pages import PAGE_ERRORS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from millpond.engine.arrow.source.parquet import ParquetSource

_SHARE = 2
"""Values of at most half of the rows are picked; of more, decoding all is not much dearer."""


class FewRows:
    """The values of few rows of one row group, by leaf."""

    def __init__(self, source: ParquetSource, number: int) -> None:
        self._source = source
        self._number = number
        self._picked: dict[int, tuple[NDArray[np.int64], pa.Array]] = {}

    def pick(self, leaves: list[int], rows: NDArray[np.int64]) -> list[int]:
        """Pick what can be picked; which leaves those are."""
        source = self._source
        few = 0 < len(rows) <= source.group_rows[self._number] // _SHARE
        if not few or source.strict:
            return []
        return [leaf for leaf in leaves if self._has(leaf, rows) or self._pick(leaf, rows)]

    def _has(self, leaf: int, rows: NDArray[np.int64]) -> bool:
        """Whether the values of these rows are there; those of other rows are left out then."""
        if leaf not in self._picked:
            return False
        known, values = self._picked[leaf]
        if known is rows:
            return True
        at = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        if not np.array_equal(known[at], rows):
            return False
        self._picked[leaf] = rows, values.take(pa.array(at))
        return True

    def _pick(self, leaf: int, rows: NDArray[np.int64]) -> bool:
        chunk = self._source.stored.chunk(self._source.file, self._number, leaf)
        if chunk is None:
            return False
        try:
            self._picked[leaf] = rows, chunk.at(rows)
        except PAGE_ERRORS:
            return False
        return True

    def names(self, leaves: list[int]) -> frozenset[str]:
        """The columns to which picked values belong."""
        return frozenset(map(self._name, leaves))

    def _name(self, leaf: int) -> str:
        kind = self._source.stored.leaf(leaf)
        assert kind is not None
        return kind.steps[0]

    def add_to(self, columns: dict[str, pa.Array], leaves: list[int]) -> None:
        """Put picked values where they belong, among columns of the same rows."""
        for leaf in leaves:
            name, (_, array) = self._name(leaf), self._picked[leaf]
            known = columns.get(name)
            columns[name] = array if known is None else merge(known, array)
