"""Rows into files and streams: CSV, JSON lines, Parquet, Arrow, in bounded memory."""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, Any, Final, Literal, Protocol

import pyarrow as pa

from millpond.plan.arrow import from_arrow_schema
from millpond.steward.rows.text import csv_header, csv_lines, json_lines, pieces

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millpond.plan.reading import Reading

FileFormat = Literal["csv", "json", "parquet", "arrow"]
GROUP_ROWS: Final = 128 * 1024
GROUP_BYTES: Final = 32 << 20
"""A row group of Parquet is written when so many rows or bytes have come together."""


class RowWriter(Protocol):
    """Takes batches, and writes them."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        ...

    def close(self) -> None:
        """Write what is left, and what belongs to the end."""
        ...


def row_writer(format_: FileFormat, sink: IO[bytes], schema: pa.Schema) -> RowWriter:
    """A writer of rows with these columns; the sink stays open."""
    if format_ == "parquet":
        return _Parquet(sink, schema)
    if format_ == "arrow":
        return _Arrow(sink, schema)
    return _Text(sink, schema, is_csv=format_ == "csv")


def write_rows(format_: FileFormat, sink: IO[bytes], run: Reading) -> int:
    """Write all rows of a run; how many there were."""
    return write_batches(format_, sink, run.schema, run)


def write_batches(
    format_: FileFormat, sink: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> int:
    """Write batches; how many rows there were."""
    writer = row_writer(format_, sink, schema)
    rows = 0
    for batch in batches:
        writer.write(batch)
        rows += batch.num_rows
    writer.close()
    return rows


class _Text:
    def __init__(self, sink: IO[bytes], schema: pa.Schema, *, is_csv: bool) -> None:
        self._sink = sink
        self._schema = from_arrow_schema(schema)
        self._lines = csv_lines if is_csv else json_lines
        # Written with the first rows: a run that fails before has written nothing.
        self._header = csv_header(self._schema) if is_csv else b""

    def _write_header(self) -> None:
        self._sink.write(self._header)
        self._header = b""

    def write(self, batch: pa.RecordBatch) -> None:
        self._write_header()
        for piece in pieces(batch):
            self._sink.write(self._lines(piece, self._schema))

    def close(self) -> None:
        self._write_header()
        self._sink.flush()


class _Arrow:
    """The streaming format of Arrow, which can be read while it is written."""

    def __init__(self, sink: IO[bytes], schema: pa.Schema) -> None:
        self._file = pa.PythonFile(_Counted(sink), mode="w")
        self._writer = pa.ipc.new_stream(self._file, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class _Parquet:
    def __init__(self, sink: IO[bytes], schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._file = pa.PythonFile(_Counted(sink), mode="w")
        self._writer = pq.ParquetWriter(
            self._file, schema, compression="zstd", write_page_checksum=True
        )
        self._schema = schema
        self._held: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        for piece in pieces(batch):
            self._held.append(piece)
            self._rows += piece.num_rows
            self._bytes += piece.nbytes
            if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
                self._flush()

    def _flush(self) -> None:
        if self._held:
            table = pa.Table.from_batches(self._held, self._schema)
            self._writer.write_table(table, row_group_size=GROUP_ROWS)
        self._held, self._rows, self._bytes = [], 0, 0

    def close(self) -> None:
        self._flush()
        self._writer.close()


class _Counted(io.RawIOBase):
    """A sink that knows how far it is, which a pipe does not; closing it leaves the pipe open."""

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self._at = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        count = memoryview(data).nbytes
        self._sink.write(data)
        self._at += count
        return count

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        if not self._sink.closed:
            self._sink.flush()
