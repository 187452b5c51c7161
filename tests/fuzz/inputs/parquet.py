"""Parquet files in many layouts, whole or damaged."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from tests.fuzz.inputs.case import Case
from tests.fuzz.inputs.tables import table
from tests.fuzz.mutation import mutate_bytes

if TYPE_CHECKING:
    from random import Random


def generate(rng: Random) -> Case:
    """A file; its truth is the table that was written and whether its bytes are as written."""
    rows = table(rng)
    sink = io.BytesIO()
    pq.write_table(
        rows,
        sink,
        compression=rng.choice(["none", "snappy", "zstd", "gzip", "lz4"]),
        use_dictionary=rng.random() < 0.5,
        data_page_version=rng.choice(["1.0", "2.0"]),
        write_page_checksum=rng.random() < 0.5,
        write_page_index=rng.random() < 0.3,
        row_group_size=rng.choice([5, 50, 1000]),
        data_page_size=rng.choice([64, 1000, 1 << 20]),
        write_statistics=rng.random() < 0.8,
        store_schema=False,  # damage in there is not seen by readers that do not use it
    )
    content = sink.getvalue()
    if rng.random() < 0.85:
        return Case(mutate_bytes(content, rng), ".parquet", (rows, False))
    return Case(content, ".parquet", (rows, True))
