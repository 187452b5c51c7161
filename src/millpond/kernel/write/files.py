"""Data files: rows by partition into Parquet, with statistics, and the add actions for them."""

from __future__ import annotations

import os
import tempfile
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.base.errors import ObjectExistsError, TypeMismatchError
from millpond.base.seals import seal_file
from millpond.kernel.partitions import directory, write_value
from millpond.kernel.paths import encode
from millpond.kernel.write.physical import arrow_schema, renamed
from millpond.kernel.write.scratch import on_this_machine
from millpond.kernel.write.seal import DIGEST, file_digest
from millpond.kernel.write.stats import FileStatistics, Leaf, indexed_leaves
from millpond.plan.types import Field, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millpond.base.store import ObjectMeta, Store
    from millpond.kernel.actions import Metadata
    from millpond.kernel.mapping import TableColumns

CODEC: Final = "zstd"
ROW_GROUP_ROWS: Final = 131_072
ROW_GROUP_BYTES: Final = 64 << 20
"""A row group is written when so many rows, or so many bytes of them, have come together."""
HELD_BYTES: Final = 256 << 20
"""So much may wait in all open files before the fullest one has to write a row group."""
FILE_BYTES: Final = 256 << 20
"""A new file is begun when one has grown to this size."""
OPEN_FILES: Final = 128
"""So many partitions are written side by side; of more, the fullest ones are closed."""
_FOLDER_BYTES: Final = 200
"""A directory's name that would be longer is left out: only the log says what is in a file."""


@dataclass(frozen=True)
class Target:
    """Where rows go: the store, the table's columns and what its metadata says of files."""

    store: Store
    columns: TableColumns
    metadata: Metadata
    put: list[str]
    """The paths of all objects that were begun, for whoever has to take them back."""
    subdirectory: str = ""
    extra: tuple[Field, ...] = ()
    """Columns that a file has beside the table's: `_change_type` of change data."""
    file_bytes: int = FILE_BYTES
    clustering: tuple[tuple[str, ...], ...] = ()
    """Columns that have statistics wherever they stand."""

    @property
    def data_schema(self) -> Struct:
        """The physical columns that files hold: all but the partition columns."""
        partitions = set(self.metadata.partition_columns)
        both = zip(self.columns.schema, self.columns.stored_schema(), strict=True)
        return Struct((*(s for f, s in both if f.name not in partitions), *self.extra))

    @property
    def leaves(self) -> list[Leaf]:
        """What statistics are kept of."""
        metadata = self.metadata
        return indexed_leaves(
            self.columns, metadata.partition_columns, metadata.configuration, self.clustering
        )


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that is in the store, and is not yet part of the table."""

    path: str
    partition_values: dict[str, str | None]
    size: int
    modified: int
    rows: int
    stats: str
    digest: str

    def to_add(self) -> dict[str, Any]:
        """The action that makes it part of the table."""
        return {
            "path": encode(self.path),
            "partitionValues": self.partition_values,
            "size": self.size,
            "modificationTime": self.modified,
            "dataChange": True,
            "stats": self.stats,
            "tags": {DIGEST: self.digest},
        }

    def to_cdc(self) -> dict[str, Any]:
        """The action that makes it change data."""
        add = self.to_add() | {"dataChange": False}
        return {n: add[n] for n in ("path", "partitionValues", "size", "dataChange", "tags")}


def write_rows(target: Target, batches: Iterable[pa.RecordBatch]) -> list[WrittenFile]:
    """Write batches of the table's logical columns; whoever owns `target.put` cleans up."""
    writer = _Writer(target, target.data_schema)
    try:
        for batch in batches:
            if batch.num_rows:
                writer.add(batch)
        return writer.finish()
    finally:
        writer.close()


@dataclass(slots=True)
class _Writer:
    target: Target
    schema: Struct
    done: list[WrittenFile] = field(default_factory=list)
    _open: dict[tuple[str | None, ...], _OpenFile] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch) -> None:
        names = self.target.metadata.partition_columns
        kept = [n for n in batch.schema.names if n not in names]
        data = renamed(batch.select(kept), self.schema)
        for key, rows in _split(batch, names, self.target.columns.schema):
            open_file = self._open.get(key)
            if open_file is None:
                if len(self._open) >= OPEN_FILES:
                    self._close(max(self._open, key=lambda k: self._open[k].stats.rows))
                open_file = self._open[key] = _OpenFile(self.target, self.schema, key)
            open_file.write(data if rows is None else data.take(rows))
            if open_file.size >= self.target.file_bytes:
                self._close(key)
        while sum(f.held_bytes for f in self._open.values()) > HELD_BYTES:
            max(self._open.values(), key=lambda f: f.held_bytes).flush()

    def _close(self, key: tuple[str | None, ...]) -> None:
        open_file = self._open[key]
        self.done.append(open_file.finish())
        del self._open[key]

    def finish(self) -> list[WrittenFile]:
        for key in list(self._open):
            self._close(key)
        return self.done

    def close(self) -> None:
        """Nothing of unfinished files stays on this machine."""
        for open_file in self._open.values():
            open_file.abandon()


class _OpenFile:
    def __init__(self, target: Target, schema: Struct, key: tuple[str | None, ...]) -> None:
        names = target.metadata.partition_columns
        physical = [target.columns.physical_name(target.columns.schema.field(n)) for n in names]
        self.target = target
        self.values = dict(zip(physical, key, strict=True))
        name = f"part-00000-{uuid.uuid4()}-c000"
        self.path = "/".join(p for p in (target.subdirectory, _folder(self.values), name) if p)
        """What its path begins with; the mark of its seal follows."""
        self.stats = FileStatistics(target.leaves)
        self.held: list[pa.RecordBatch] = []
        self.held_rows = self.held_bytes = 0
        self.schema = arrow_schema(schema)
        with on_this_machine(self.path):
            handle, name = tempfile.mkstemp(prefix="millpond-", suffix=".parquet")
            os.close(handle)
            self.local = Path(name)
            self.writer = pq.ParquetWriter(
                self.local,
                self.schema,
                compression=CODEC,
                write_page_index=True,
                write_page_checksum=True,
            )

    @property
    def size(self) -> int:
        return self.local.stat().st_size

    def write(self, batch: pa.RecordBatch) -> None:
        self.stats.add(batch)
        self.held.append(pa.RecordBatch.from_arrays(batch.columns, schema=self.schema))
        self.held_rows += batch.num_rows
        self.held_bytes += batch.get_total_buffer_size()
        if self.held_rows >= ROW_GROUP_ROWS or self.held_bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        if self.held:
            table = pa.Table.from_batches(self.held)
            with on_this_machine(self.path):
                self.writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        self.held = []
        self.held_rows = self.held_bytes = 0

    def finish(self) -> WrittenFile:
        self.flush()
        with on_this_machine(self.path):
            self.writer.close()
            path = f"{self.path}.{seal_file(self.local)}.{CODEC}.parquet"
        self.target.put.append(path)
        digest = file_digest(self.local)
        meta = put_own(self.target.store, path, self.local)
        self.local.unlink(missing_ok=True)
        return WrittenFile(
            path,
            self.values,
            meta.size,
            int(meta.modified.timestamp() * 1000),
            self.stats.rows,
            self.stats.to_json(),
            digest,
        )

    def abandon(self) -> None:
        with suppress(OSError):
            self.writer.close()
        self.local.unlink(missing_ok=True)


def put_own(store: Store, path: str, local: Path) -> ObjectMeta:
    """Put a file under a name that nobody else has: if it is there, an answer was lost."""
    try:
        return store.put_file(path, local)
    except ObjectExistsError:
        return store.head(path)


def _folder(values: dict[str, str | None]) -> str:
    parts = [directory([item]) for item in values.items()]
    return "/".join(part for part in parts if len(part.encode()) <= _FOLDER_BYTES)


def _split(
    batch: pa.RecordBatch, names: tuple[str, ...], schema: Struct
) -> Iterator[tuple[tuple[str | None, ...], pa.Array | None]]:
    """The rows of each partition, by the texts of its values."""
    if not names:
        yield (), None
        return
    import numpy as np

    codes = np.zeros(batch.num_rows, np.int64)
    keys: list[tuple[str | None, ...]] = [()]
    for name in names:
        coded = batch.column(name).dictionary_encode(null_encoding="encode")
        type_ = schema.field(name).type
        texts = [write_value(value, type_) for value in _values(coded.dictionary, name)]
        both = codes * len(texts) + coded.indices.to_numpy(zero_copy_only=False)
        # Only those that occur are counted on: the product of many columns would overflow.
        used, codes = np.unique(both, return_inverse=True)
        keys = [(*keys[int(code) // len(texts)], texts[int(code) % len(texts)]) for code in used]
    if len(keys) == 1:
        yield keys[0], None
        return
    order = np.argsort(codes, kind="stable")
    edges = np.flatnonzero(np.diff(codes[order])) + 1
    for key, rows in zip(keys, np.split(order, edges), strict=True):
        yield key, pa.array(rows)


def _values(array: pa.Array, column: str) -> list[Any]:
    try:
        return list(array.to_pylist())
    except (ValueError, OverflowError) as error:
        raise TypeMismatchError(
            f"a value of the partition column {column!r} is out of bounds: {error}",
            hint="partition values are of the years 1 to 9999",
        ) from error
