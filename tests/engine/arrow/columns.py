"""Batches and expressions for the evaluator's tests: built from Python values, compared exactly.

Dates and timestamps are integers (days, microseconds), so that every value of a type can be tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millpond.engine.arrow.eval import evaluate
from millpond.plan.arrow import to_arrow, to_arrow_schema
from millpond.plan.bind import bind
from millpond.plan.types import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.bound import BoundExpr
    from millpond.plan.expr import Expr
    from millpond.plan.types import DataType


def make_batch(schema: Struct, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """Rows as a batch of this schema."""
    columns = [
        pa.array([row.get(field.name) for row in rows], to_arrow(field.type))
        for field in schema.fields
    ]
    return pa.RecordBatch.from_arrays(columns, schema=to_arrow_schema(schema))


def value_of(expr: Expr, **columns: tuple[DataType, Sequence[Any]]) -> list[Any]:
    """An expression over columns given as type and values, in three layouts that must agree."""
    schema = Struct.of(**{name: type_ for name, (type_, _) in columns.items()})
    count = len(next(iter(columns.values()))[1])
    rows = [{name: values[i] for name, (_, values) in columns.items()} for i in range(count)]
    return evaluated(bind(expr, schema), make_batch(schema, rows))


def evaluated(expr: BoundExpr, batch: pa.RecordBatch) -> list[Any]:
    """The values of an expression, also when the batch is a slice in the middle of a larger one."""
    array = evaluate(expr, batch)
    array.validate(full=True)
    assert array.type == to_arrow(expr.type)
    assert len(array) == batch.num_rows
    found = to_python(array)
    around = pa.concat_batches([batch, batch, batch])
    sliced = evaluate(expr, around.slice(batch.num_rows, batch.num_rows))
    assert [repr(x) for x in to_python(sliced)] == [repr(x) for x in found]
    hiding = evaluate(expr, with_hidden_values(batch))
    assert [repr(x) for x in to_python(hiding)] == [repr(x) for x in found]
    return found


def with_hidden_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, but null lists and structs have values beneath them that must not be seen."""
    return pa.RecordBatch.from_arrays(
        [_hide_values(column) for column in batch.columns], schema=batch.schema
    )


def _hide_values(array: pa.Array) -> pa.Array:
    there = [i for i, valid in enumerate(array.is_valid().to_pylist()) if valid]
    if not there or not array.null_count:
        return array
    full = array.take(pa.array([i if i in there else there[0] for i in range(len(array))]))
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(
            full.offsets, full.values, type=array.type, mask=array.is_null()
        )
    if pa.types.is_struct(array.type):
        children = [full.field(i) for i in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(array.type), mask=array.is_null())
    return array


def to_python(array: pa.Array) -> list[Any]:
    """The values as `make_batch` takes them."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        return list(array.view(pa.int64()).to_pylist())
    if pa.types.is_date32(kind):
        return list(array.view(pa.int32()).to_pylist())
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        fields = [to_python(array.field(i)) for i in range(kind.num_fields)]
        names = [kind.field(i).name for i in range(kind.num_fields)]
        rows = zip(*fields, strict=True) if fields else (() for _ in valid)
        return [
            dict(zip(names, row, strict=True)) if there else None
            for there, row in zip(valid, rows, strict=True)
        ]
    if pa.types.is_list(kind):
        return [
            to_python(item.values) if there else None
            for there, item in zip(valid, array, strict=True)
        ]
    return list(array.to_pylist())
