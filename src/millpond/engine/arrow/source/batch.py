"""Arrays as a record batch of a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from millpond.plan.arrow import to_arrow_schema

if TYPE_CHECKING:
    from millpond.plan.types import Struct


def batch_of(arrays: list[pa.Array], schema: Struct, rows: int) -> pa.RecordBatch:
    """A batch of these columns; one without columns still has its rows."""
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(schema))
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None], 0))
