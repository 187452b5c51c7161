"""The leaves of a Parquet file that can be read out of its pages, and those whose texts repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from millpond.base.seals import chunk_span
from millpond.engine.arrow.source.pages import PAGE_ERRORS, StoredChunk, StoredLeaf

if TYPE_CHECKING:
    from ctypes import CDLL

    import pyarrow as pa
    import pyarrow.parquet as pq

    from millpond.engine.arrow.source.checked import CheckedSeal
    from millpond.engine.arrow.source.leaves import Layout

_FEWEST_ROWS = 10_000
"""Smaller files are read plainly: anything else would cost more than it saves."""
_BYTES_PER_VALUE = 4
"""Texts that take fewer are read as dictionaries; of a part of the rows, fewer by that part."""


class StoredLeaves:
    """What is known of the leaves of one file."""

    def __init__(
        self,
        metadata: pq.FileMetaData,
        layout: Layout,
        library: CDLL | None = None,
        seal: CheckedSeal | None = None,
    ) -> None:
        self._metadata = metadata
        self._layout = layout
        self._is_large = metadata.num_rows >= _FEWEST_ROWS
        self._library = library if self._is_large else None
        self._seal = seal
        self._leaves: dict[int, StoredLeaf | None] = {}
        self._repeating: dict[int, float] = {}

    def repeat(self, leaf: int, share: float = 1.0) -> bool:
        """Whether a leaf's texts are few, and dictionaries throughout, in a share of the rows."""
        found = self._repeating.get(leaf)
        if found is None:
            groups = range(self._metadata.num_row_groups) if self._is_large else ()
            chunks = (self._metadata.row_group(g).column(leaf) for g in groups)
            found = self._repeating[leaf] = max(map(_bytes_per_text, chunks), default=np.inf)
        return found < _BYTES_PER_VALUE * share

    def leaf(self, leaf: int) -> StoredLeaf | None:
        """A leaf that can be read out of pages; None for others."""
        if self._library is None:
            return None
        if leaf not in self._leaves:
            column, place = self._metadata.schema.column(leaf), self._layout.place(leaf)
            self._leaves[leaf] = StoredLeaf.of(column, place)
        return self._leaves[leaf]

    def chunk(self, file: pa.NativeFile, group: int, leaf: int) -> StoredChunk | None:
        """A leaf of a row group; None if pyarrow has to read it, or to say what is wrong.

        Raises SourceError if its bytes are not those that the file's seal tells.
        """
        kind = self.leaf(leaf)
        if kind is None or self._library is None:
            return None
        facts = self._metadata.row_group(group)
        chunk = facts.column(leaf)
        start, size = chunk_span(chunk)
        try:
            stored = file.read_at(size, start)
            if self._seal is not None:
                self._seal.check_bytes(group, leaf, stored)
            how = kind, chunk.compression, facts.num_rows
            return StoredChunk(self._library, stored, *how, verify=self._seal is None)
        except (*PAGE_ERRORS, ValueError):  # ValueError: an offset before the file
            return None


def _bytes_per_text(chunk: Any) -> float:
    """How many bytes a value takes in a chunk of texts with a dictionary; infinite for others."""
    if chunk.physical_type != "BYTE_ARRAY" or not chunk.has_dictionary_page:
        return np.inf
    return float(chunk.total_uncompressed_size / max(chunk.num_values, 1))
