"""Column chunks of a local Parquet file, held against the hashes in the seal of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.base.seals import chunk_span, hash_range
from millpond.engine.arrow.source.files import not_as_written

if TYPE_CHECKING:
    import pyarrow as pa

    from millpond.base.seals import Seal


class CheckedSeal:
    """The seal of one file; a chunk is hashed once, however often it is read."""

    def __init__(self, path: str, metadata: Any, seal: Seal) -> None:
        self._path = path
        self._metadata = metadata
        self.seal = seal
        self._good: set[int] = set()

    def check(self, file: pa.NativeFile, group: int, leaves: list[int]) -> None:
        """Raise SourceError unless some leaves of a row group are as they were written."""
        chunks = None
        for leaf in leaves:
            number = self._number(group, leaf)
            if number not in self._good:
                chunks = chunks or self._metadata.row_group(group)
                found = hash_range(file.fileno(), *chunk_span(chunks.column(leaf)))
                self._note(group, leaf, is_good=self.seal.is_hash(number, found))

    def check_bytes(self, group: int, leaf: int, content: bytes) -> None:
        """The same of a leaf of a row group that was read already."""
        number = self._number(group, leaf)
        if number not in self._good:
            self._note(group, leaf, is_good=self.seal.is_chunk(number, content))

    def _number(self, group: int, leaf: int) -> int:
        return group * int(self._metadata.num_columns) + leaf

    def _note(self, group: int, leaf: int, *, is_good: bool) -> None:
        if not is_good:
            name = self._metadata.schema.column(leaf).path
            what = f"column {name} of row group {group} is not what was written"
            raise not_as_written(self._path, what)
        self._good.add(self._number(group, leaf))
