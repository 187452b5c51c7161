"""What is to be written as batches of the table's own columns; what does not fit is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millpond.base.errors import SchemaError
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.node import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.plan.executor import Executor
    from millpond.plan.types import Struct


def batches_of(data: Any, schema: Struct, *, engine: str | Executor) -> Iterator[pa.RecordBatch]:
    """The rows of a plan, of anything Arrow-like, of dictionaries, in the table's columns."""
    target = to_arrow_schema(schema)
    for batch in _source(data, schema, engine):
        yield fitted(batch, target, schema)


def _source(data: Any, schema: Struct, engine: str | Executor) -> Iterator[pa.RecordBatch]:
    if isinstance(data, Plan):
        yield from data.execute(engine=engine)
    elif isinstance(data, pa.RecordBatch):
        yield data
    elif hasattr(data, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(data)
    elif isinstance(data, list | tuple) and all(isinstance(row, dict) for row in data):
        unknown = {name for row in data for name in row} - set(schema.names)
        if unknown:
            raise _unknown(sorted(unknown)[0], schema)
        try:
            table = pa.Table.from_pylist(list(data), to_arrow_schema(schema))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise SchemaError(f"a row does not fit the table: {error}") from error
        yield from table.to_batches()
    elif type(data).__module__.startswith("pandas"):
        yield from pa.Table.from_pandas(data, preserve_index=False).to_batches()
    else:
        raise SchemaError(
            f"rows can't be made of a {type(data).__name__}",
            hint="give an Arrow table, a plan, a DataFrame or a list of dictionaries",
        )


def fitted(batch: pa.RecordBatch, target: pa.Schema, schema: Struct) -> pa.RecordBatch:
    """A batch in the table's columns: missing ones are null, narrower types are widened."""
    given = batch.schema.names
    for name in given:
        if name not in schema:
            raise _unknown(name, schema)
    if len(set(given)) < len(given):
        raise SchemaError("a column stands twice in the rows that are to be written")
    columns = []
    for field, wanted in zip(target, schema, strict=True):
        if field.name not in given:
            array = pa.nulls(batch.num_rows, field.type)
        else:
            array = batch.column(field.name)
        if array.type != field.type:
            try:
                array = array.cast(field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise SchemaError(
                    f"the column {field.name!r} is {array.type} in the rows and {wanted.type} "
                    f"in the table: {error}",
                    hint="cast it, or change the table's schema first",
                ) from error
        if array.null_count and not wanted.nullable:
            raise SchemaError(
                f"the column {field.name!r} is null in a row, and the table forbids that"
            )
        columns.append(array)
    return pa.RecordBatch.from_arrays(columns, schema=target)


def _unknown(name: str, schema: Struct) -> SchemaError:
    return SchemaError(
        f"the table has no column {name!r}",
        hint=f"{schema.near(name)}; a new column needs set_metadata(schema=…) first",
    )
