"""Arrow IPC files and streams, whole or damaged."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa
from tests.fuzz.inputs.case import Case
from tests.fuzz.inputs.tables import table
from tests.fuzz.mutation import mutate_bytes

if TYPE_CHECKING:
    from random import Random


def generate(rng: Random) -> Case:
    """A file or a stream; its truth is the table that was written."""
    rows = table(rng)
    if rng.random() < 0.3:
        at = rng.randrange(rows.num_columns)
        name = rows.column_names[at]
        if not pa.types.is_nested(rows.schema.field(at).type):
            rows = rows.set_column(at, name, rows.column(at).dictionary_encode())
    options = pa.ipc.IpcWriteOptions(compression=rng.choice([None, None, "lz4", "zstd"]))
    sink = io.BytesIO()
    opened = pa.ipc.new_file if rng.random() < 0.5 else pa.ipc.new_stream
    with opened(sink, rows.schema, options=options) as writer:
        writer.write_table(rows, max_chunksize=rng.choice([1, 7, 1000]))
    content = sink.getvalue()
    if rng.random() < 0.85:
        return Case(mutate_bytes(content, rng), ".arrow")
    return Case(content, ".arrow", rows)
