"""Data files: rows by partition into Parquet, with statistics, and the add actions for them."""

from __future__ import annotations

import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.kernel.partitions import directory, write_value
from millpond.kernel.paths import encode
from millpond.kernel.write.stats import FileStatistics, indexed_leaves
from millpond.plan.arrow import to_arrow
from millpond.plan.sources import STORED_ID
from millpond.plan.types import Field, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millpond.base.store import Store
    from millpond.kernel.actions import Metadata
    from millpond.kernel.mapping import TableColumns
    from millpond.plan.types import DataType

CODEC: Final = "zstd"
ROW_GROUP_ROWS: Final = 131_072
FILE_BYTES: Final = 256 << 20
"""A new file is begun when one has grown to this size."""
OPEN_FILES: Final = 128
"""So many partitions are written side by side; of more, the fullest ones are closed."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows go: the store, the table's columns and what its metadata says of files."""

    store: Store
    columns: TableColumns
    metadata: Metadata
    subdirectory: str = ""
    extra: tuple[Field, ...] = ()
    """Columns that a file has beside the table's: `_change_type` of change data."""
    file_bytes: int = FILE_BYTES

    @property
    def data_schema(self) -> Struct:
        """The physical columns that files hold: all but the partition columns."""
        partitions = set(self.metadata.partition_columns)
        names = [f.name for f in self.columns.schema if f.name not in partitions]
        physical = {
            logical.name: stored
            for logical, stored in zip(
                self.columns.schema, self.columns.stored_schema(), strict=True
            )
        }
        return Struct((*(physical[name] for name in names), *self.extra))


@dataclass(slots=True)
class WrittenFile:
    """A file that is in the store, and is not yet part of the table."""

    path: str
    partition_values: dict[str, str | None]
    size: int
    modified: int
    rows: int
    stats: str

    def to_add(self, *, data_change: bool = True) -> dict[str, Any]:
        """The action that makes it part of the table."""
        return {
            "path": encode(self.path),
            "partitionValues": self.partition_values,
            "size": self.size,
            "modificationTime": self.modified,
            "dataChange": data_change,
            "stats": self.stats,
        }


def write_rows(target: Target, batches: Iterable[pa.RecordBatch]) -> list[WrittenFile]:
    """Write batches of the table's logical columns. If it fails, what was written is removed."""
    writer = _Writer(target)
    try:
        for batch in batches:
            writer.add(batch)
        return writer.finish()
    except BaseException:
        writer.abandon()
        raise


@dataclass(slots=True)
class _Writer:
    target: Target
    done: list[WrittenFile] = field(default_factory=list)
    _open: dict[tuple[str | None, ...], _OpenFile] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch) -> None:
        names = self.target.metadata.partition_columns
        kept = [n for n in batch.schema.names if n not in names]
        data = _renamed(batch.select(kept), self.target.data_schema)
        for key, rows in _split(batch, names, self.target.columns.schema):
            part = data if rows is None else data.take(rows)
            open_file = self._open.get(key)
            if open_file is None:
                if len(self._open) >= OPEN_FILES:
                    self._close(max(self._open, key=lambda k: self._open[k].stats.rows))
                open_file = self._open[key] = _OpenFile(self.target, key)
            open_file.write(part)
            if open_file.size >= self.target.file_bytes:
                self._close(key)

    def _close(self, key: tuple[str | None, ...]) -> None:
        self.done.append(self._open.pop(key).finish())

    def finish(self) -> list[WrittenFile]:
        for key in list(self._open):
            self._close(key)
        return self.done

    def abandon(self) -> None:
        for open_file in self._open.values():
            open_file.abandon()
        remove_files(self.target.store, self.done)


def remove_files(store: Store, files: Iterable[WrittenFile]) -> None:
    """Take files back that no commit has made part of the table."""
    for file in files:
        store.delete(file.path)


class _OpenFile:
    def __init__(self, target: Target, key: tuple[str | None, ...]) -> None:
        names = target.metadata.partition_columns
        physical = [target.columns.physical_name(target.columns.schema.field(n)) for n in names]
        self.target = target
        self.values = dict(zip(physical, key, strict=True))
        folder = directory(self.values.items()) if names else ""
        name = f"part-00000-{uuid.uuid4()}-c000.{CODEC}.parquet"
        self.path = "/".join(p for p in (target.subdirectory, folder, name) if p)
        schema = target.data_schema
        self.stats = FileStatistics(
            indexed_leaves(Struct(schema.fields[: len(schema) - len(target.extra)]),
                           target.metadata.configuration)
        )  # fmt: skip
        with tempfile.NamedTemporaryFile(prefix="millpond-", suffix=".parquet", delete=False) as f:
            self.local = Path(f.name)
        self.writer = pq.ParquetWriter(
            self.local, arrow_schema(schema), compression=CODEC, write_page_index=True
        )

    @property
    def size(self) -> int:
        return self.local.stat().st_size

    def write(self, batch: pa.RecordBatch) -> None:
        self.stats.add(batch)
        schema = arrow_schema(self.target.data_schema)
        typed = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        self.writer.write_batch(typed, row_group_size=ROW_GROUP_ROWS)

    def finish(self) -> WrittenFile:
        try:
            self.writer.close()
            meta = self.target.store.put_file(self.path, self.local)
        finally:
            self.local.unlink(missing_ok=True)
        modified = int(meta.modified.timestamp() * 1000)
        stats = self.stats.to_json()
        return WrittenFile(self.path, self.values, meta.size, modified, self.stats.rows, stats)

    def abandon(self) -> None:
        self.writer.close()
        self.local.unlink(missing_ok=True)


def _split(
    batch: pa.RecordBatch, names: tuple[str, ...], schema: Struct
) -> Iterator[tuple[tuple[str | None, ...], pa.Array | None]]:
    """The rows of each partition, by the texts of its values."""
    if not names:
        yield (), None
        return
    import numpy as np

    codes = np.zeros(batch.num_rows, np.int64)
    texts: list[list[str | None]] = []
    for name in names:
        coded = batch.column(name).dictionary_encode(null_encoding="encode")
        type_ = schema.field(name).type
        values = [write_value(value, type_) for value in coded.dictionary.to_pylist()]
        texts.append(values)
        codes = codes * len(values) + coded.indices.to_numpy(zero_copy_only=False)
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        rest, key = int(code), []
        for values in reversed(texts):
            rest, at = divmod(rest, len(values))
            key.append(values[at])
        whole = len(rows) == batch.num_rows
        yield tuple(reversed(key)), None if whole else pa.array(rows)


def _renamed(batch: pa.RecordBatch, schema: Struct) -> pa.RecordBatch:
    """Logical columns under their physical names, at every depth."""
    arrays = [_as(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(schema.names))


def _as(column: pa.Array, type_: DataType) -> pa.Array:
    """The same values under the names of another type of the same shape."""
    wanted = to_arrow(type_)
    if column.type == wanted:
        return column
    if isinstance(type_, Struct):
        parts = [_as(part, f.type) for part, f in zip(column.flatten(), type_, strict=True)]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=mask)
    if isinstance(type_, List):
        plain = column if not column.offset else pa.concat_arrays([column])
        values = _as(plain.values, type_.element)
        mask = plain.is_null() if plain.null_count else None
        return pa.ListArray.from_arrays(plain.offsets, values, wanted, mask=mask)
    if isinstance(type_, Map):
        plain = column if not column.offset else pa.concat_arrays([column])
        keys, items = _as(plain.keys, type_.key), _as(plain.items, type_.value)
        mask = plain.is_null() if plain.null_count else None
        return pa.MapArray.from_arrays(plain.offsets, keys, items, wanted, mask=mask)
    return column.cast(wanted)


def arrow_schema(schema: Struct) -> pa.Schema:
    """A physical schema for Parquet, with the field ids that it carries."""
    return pa.schema([_field(item) for item in schema])


def _field(item: Field) -> pa.Field:
    number = item.metadata_dict().get(STORED_ID)
    metadata = None if number is None else {"PARQUET:field_id": str(number)}
    return pa.field(item.name, _type(item.type), item.nullable, metadata)


def _type(type_: DataType) -> pa.DataType:
    if isinstance(type_, Struct):
        return pa.struct([_field(item) for item in type_])
    if isinstance(type_, List):
        return pa.list_(pa.field("element", _type(type_.element), type_.contains_null))
    if isinstance(type_, Map):
        value = pa.field("value", _type(type_.value), type_.contains_null)
        return pa.map_(pa.field("key", _type(type_.key), nullable=False), value)
    return to_arrow(type_)
