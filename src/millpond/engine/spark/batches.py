"""Arrow batches given exactly the schema that a plan promises, and only the rows to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with this schema; only names, nullability and metadata may differ."""
    import pyarrow as pa

    if batch.schema.equals(schema, check_metadata=True):
        return batch
    for field, column in zip(schema, batch.columns, strict=True):
        if not field.nullable and column.null_count:
            # Here, since Spark's Python workers run this too, and may not have this package.
            from millpond.base.errors import EngineError

            raise EngineError(
                f"the column {field.name!r} holds nulls, its schema says that it has none",
                engine="spark",
                hint="declare it as nullable",
            )
    _, array = batch.__arrow_c_array__()
    return pa.RecordBatch._import_from_c_capsule(schema.__arrow_c_schema__(), array)  # noqa: SLF001


def keep(batch: pa.RecordBatch, mask: pa.BooleanArray, *, by: str) -> pa.RecordBatch:
    """The rows that the row filter of this name keeps; each has to have its answer.

    The error is a plain one, since workers may not have ours: `errors.translate` knows its words.
    """
    import pyarrow.compute as pc

    if len(mask) != batch.num_rows or mask.null_count:
        raise ValueError(
            f"the row filter {by} gave {len(mask)} answers, "
            f"{mask.null_count} of them null, for {batch.num_rows} rows"
        )
    kept = pc.indices_nonzero(mask)
    return batch if len(kept) == batch.num_rows else batch.take(kept)
