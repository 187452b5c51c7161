"""Sorted runs of rows, in memory or spilled to one Arrow IPC file, read back piece by piece.

A run's rows are in the order in which they will leave, so each window of the final order is one
stretch of every run. Pieces keep what has to be read for a window small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.engine.arrow.context import Context

_PIECES = 64
_FEWEST_ROWS, _MOST_ROWS = 256, 8_192


class Runs:
    """Runs that are written once, one after the other, and read in windows, each row once."""

    def __init__(self, schema: pa.Schema, context: Context, *, limit: int) -> None:
        self._schema = schema
        # While rows leave, one piece of each run is in memory: all of them have to fit the limit.
        self._piece_rows = min(_MOST_ROWS, max(_FEWEST_ROWS, limit // _PIECES))
        self._context = context
        self._memory: list[list[pa.RecordBatch]] = []
        self._blocks: list[range] = []
        self._sink: pa.NativeFile | None = None
        self._writer: pa.RecordBatchFileWriter | None = None
        self._reader: pa.RecordBatchFileReader | None = None
        self._written = 0

    @property
    def spilled(self) -> bool:
        """Whether runs are on disk."""
        return self._writer is not None

    def add(self, run: pa.RecordBatch) -> None:
        """One more run, its rows in their final order."""
        step = self._piece_rows
        pieces = [run.slice(i, step) for i in range(0, run.num_rows, step)]
        if self._writer is None:
            self._memory.append(pieces)
        else:
            self._write(pieces)

    def spill(self) -> None:
        """Move all runs to disk, and those to come."""
        if self._writer is not None:
            return
        self._sink = pa.OSFile(str(self._context.temporary(f"runs-{id(self)}.arrow")), "wb")
        options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
        self._writer = pa.ipc.new_file(self._sink, self._schema, options=options)
        for pieces in self._memory:
            self._write(pieces)
        self._memory = []

    def _write(self, pieces: list[pa.RecordBatch]) -> None:
        assert self._writer is not None
        assert self._sink is not None
        before = self._sink.tell()
        for piece in pieces:
            self._writer.write_batch(piece)
        self._blocks.append(range(self._written, self._written + len(pieces)))
        self._written += len(pieces)
        self._context.counters.add("spill_bytes", self._sink.tell() - before)

    def cursors(self) -> list[Cursor]:
        """A reading position at the start of each run; after this, no run can be added."""
        if self._writer is None:
            return [Cursor(iter(pieces)) for pieces in self._memory]
        self._writer.close()
        assert self._sink is not None
        self._sink.close()
        path = str(self._context.temporary(f"runs-{id(self)}.arrow"))
        self._sink = pa.OSFile(path)
        self._reader = pa.ipc.open_file(self._sink)
        return [Cursor(self._read(blocks)) for blocks in self._blocks]

    def _read(self, blocks: range) -> Iterator[pa.RecordBatch]:
        assert self._reader is not None
        for block in blocks:
            yield self._reader.get_batch(block)

    def close(self) -> None:
        """Close the file; the run's context removes it."""
        if self._sink is not None:
            self._sink.close()


class Cursor:
    """How far a run has been read."""

    def __init__(self, pieces: Iterator[pa.RecordBatch]) -> None:
        self._pieces = pieces
        self._rest: pa.RecordBatch | None = None

    @property
    def held(self) -> int:
        """How many rows were read from disk or memory, but not asked for yet."""
        return 0 if self._rest is None else self._rest.num_rows

    def read(self, rows: int) -> list[pa.RecordBatch]:
        """The next rows of the run."""
        found = []
        while rows:
            piece = next(self._pieces) if self._rest is None else self._rest
            part = piece.slice(0, rows)
            rest = piece.num_rows - part.num_rows
            self._rest = piece.slice(part.num_rows) if rest else None
            rows -= part.num_rows
            found.append(part)
        return found
