"""`RowFile`: one file of the OpLog. Rows are read without their contents, and one content alone.

Small files come whole, in one request; of large ones only what is needed is read. A file that is
missing or damaged is an error that names it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.base.errors import IntegrityError, MillpondError, ObjectNotFoundError
from millpond.base.seals import BrokenSealError, chunk_span, mark_in, tail_of
from millpond.fs.oplog.rows import check_columns, light_columns, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millpond.base.store import Store
    from millpond.fs.entry import Row

WHOLE_BYTES: Final = 4 << 20
"""What is smaller is read whole."""


class RowFile:
    """A file of rows, opened."""

    def __init__(self, store: Store, path: str) -> None:
        self.path = path
        self._name = f"{store.url}/{path}"
        self._group: tuple[int, Any] | None = None
        with self._reading():
            self._source, is_here = _source(store, path)
            tail = tail_of(self._source.read_at, self._source.size(), required=mark_in(path))
            self._seal = tail.seal if tail is not None and is_here else None
            """Checks what is read, where its bytes are at hand: the rest has checksums of pages."""
            self._file = pq.ParquetFile(
                self._source, page_checksum_verification=True, pre_buffer=True
            )
            check_columns(self._file.schema_arrow)

    def rows(self, part_id: str) -> list[Row]:
        """All rows, without contents."""
        with self._reading():
            columns = light_columns()
            for group in range(self._file.num_row_groups):
                self._check(group, columns)
            return read_rows(self._file.read(columns, use_threads=False), part_id)

    def columns(self, *names: str) -> pa.Table:
        """Return some columns of all rows."""
        with self._reading():
            for group in range(self._file.num_row_groups):
                self._check(group, names)
            return self._file.read(list(names), use_threads=False)

    def content(self, number: int) -> bytes | None:
        """The content of one row."""
        group, first = 0, 0
        while number >= first + self._file.metadata.row_group(group).num_rows:
            first += self._file.metadata.row_group(group).num_rows
            group += 1
        known = self._group
        if known is None or known[0] != group:
            # The next content that is asked for is often beside this one.
            known = self._group = (group, self._contents(group))
        found: bytes | None = known[1][number - first].as_py()
        return found

    def contents(self) -> Iterator[bytes | None]:
        """The contents of all rows, in their order."""
        for group in range(self._file.num_row_groups):
            for value in self._contents(group):
                yield value.as_py()

    def _contents(self, group: int) -> Any:
        with self._reading():
            self._check(group, ["content"])
            found = self._file.read_row_group(group, ["content"], use_threads=False)
            if len(found) != self._file.metadata.row_group(group).num_rows:
                raise ValueError("it has fewer contents than rows")
            return found.column("content")

    def _check(self, group: int, columns: Sequence[str]) -> None:
        """Hold the column chunks that are about to be read against the seal."""
        if self._seal is None:
            return
        chunks, names = self._file.metadata.row_group(group), set(columns)
        for leaf in range(chunks.num_columns):
            chunk = chunks.column(leaf)
            if chunk.path_in_schema in names:
                start, length = chunk_span(chunk)
                content = self._source.read_at(length, start)
                if not self._seal.is_chunk(group * chunks.num_columns + leaf, content):
                    raise ValueError(f"its column {chunk.path_in_schema} is not what was written")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except ObjectNotFoundError as error:
            raise self._error("gone") from error
        except MillpondError:
            raise
        except (pa.ArrowException, OSError, ValueError, KeyError, BrokenSealError) as error:
            raise self._error(f"damaged: {error}") from error

    def _error(self, what: str) -> IntegrityError:
        return IntegrityError(
            f"{self._name}, which holds rows of the pond, is {what}",
            path=self.path,
            hint="pond fsck tells what else is damaged; restore it from a backup",
        )


def _source(store: Store, path: str) -> tuple[pa.NativeFile, bool]:
    """Open a file; whether its bytes are at hand, in memory or on this machine."""
    head = store.get_range(path, 0, WHOLE_BYTES)
    if len(head) < WHOLE_BYTES:
        return pa.BufferReader(head), True
    from millpond.engine.arrow.source.storefile import StoreFile

    return pa.PythonFile(StoreFile(store, path), mode="r"), not store.capabilities.has_flat_names
