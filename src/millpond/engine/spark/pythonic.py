"""FilterOrdered and StatefulFunction inside a plan: Python over Arrow batches in row order.

Without keys, one task sees all rows. With keys that all calls share, each task sees whole keys,
one after the other, and the rows keep their places by their hidden keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.spark.frame import Frame
from millpond.engine.spark.types import to_cast, to_spark
from millpond.engine.spark.worker import (
    CallStateful,
    FilterRows,
    StatefulCall,
    pack,
    send_by_value,
)
from millpond.plan.arrow import to_arrow, to_arrow_schema
from millpond.plan.bound import BoundExpr, row_paths
from millpond.plan.paths import Name
from millpond.plan.types import Field, Struct, is_fractional

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.expressions import Expressions
    from millpond.plan.rows import FilterOrdered
    from millpond.plan.streams import StatefulFunction, StatefulMapping


def compile_filter_ordered(
    node: FilterOrdered, inputs: list[Frame], context: Context, *, ordered: bool
) -> Frame:
    """The filter in one Python worker that sees all rows in order."""
    del ordered
    frame = inputs[0].keyed(context)
    row_filter = node.row_filter
    columns = row_filter.columns
    schema = to_arrow_schema(node.schema.select(columns))
    filter_rows = FilterRows(row_filter.name, pack(row_filter), tuple(columns), schema)
    one = _one_partition(frame.df, frame.keys, context)
    send_by_value()
    df = one.mapInArrow(filter_rows, one.schema)
    return Frame(df, node.schema, natural=True, keys=frame.keys)


def compile_stateful(
    node: StatefulFunction, inputs: list[Frame], context: Context, *, ordered: bool
) -> Frame:
    """Mappings that share keys and do not need each other run together."""
    del ordered
    frame = inputs[0].keyed(context)
    for group in _groups(node.mappings):
        frame = _call_group(group, frame, context)
    return frame


def _groups(mappings: tuple[StatefulMapping, ...]) -> list[list[StatefulMapping]]:
    groups: list[list[StatefulMapping]] = []
    for mapping in mappings:
        if groups and groups[-1][0].partition_by == mapping.partition_by:
            made = {other.name for other in groups[-1]}
            if not made & _used(mapping):
                groups[-1].append(mapping)
                continue
        groups.append([mapping])
    return groups


def _used(mapping: StatefulMapping) -> set[str]:
    exprs: list[BoundExpr] = [*mapping.args, *mapping.partition_by]
    if mapping.where is not None:
        exprs.append(mapping.where)
    steps = [path.steps[0] for expr in exprs for path in row_paths(expr)]
    return {step.name for step in steps if isinstance(step, Name)}


def _call_group(group: list[StatefulMapping], frame: Frame, context: Context) -> Frame:
    over = context.over(frame.schema)
    added: dict[str, Column] = {}
    partition = [_key(expr, over, added, context) for expr in group[0].partition_by]
    calls = tuple(_stateful_call(mapping, over, added, context) for mapping in group)
    carried = (*frame.schema.names, *frame.keys)
    df = frame.df.select(
        *context.columns(carried), *(column.alias(name) for name, column in added.items())
    )
    if partition:
        ordered = df.repartition(*context.columns(partition))
        ordered = ordered.sortWithinPartitions(*context.ascending((*partition, *frame.keys)))
    else:
        ordered = _one_partition(df, frame.keys, context)
    fields = tuple(Field(mapping.name, mapping.type) for mapping in group)
    result = _result_type(ordered, carried, fields)
    call = CallStateful(calls, tuple(partition), carried)
    send_by_value()
    mapped = ordered.mapInArrow(call, result)
    schema = Struct((*frame.schema.fields, *fields))
    mapped = mapped.select(*context.columns((*schema.names, *frame.keys)))
    return Frame(mapped, schema, natural=not partition, keys=frame.keys)


def _stateful_call(
    mapping: StatefulMapping, over: Expressions, added: dict[str, Column], context: Context
) -> StatefulCall:
    args = []
    for expr in mapping.args:
        args.append(context.hidden())
        added[args[-1]] = over.column(expr)
    where = None
    if mapping.where is not None:
        where = context.hidden()
        added[where] = over.column(mapping.where)
    return StatefulCall(
        pack(mapping.function), tuple(args), where, mapping.name, to_arrow(mapping.type)
    )


def _key(expr: BoundExpr, over: Expressions, added: dict[str, Column], context: Context) -> str:
    """A column to partition by; numbers that are equal get the same bits."""
    f = context.functions
    name = context.hidden()
    column = over.column(expr)
    if is_fractional(expr.type):
        zero, nan = f.lit(0.0), f.lit(float("nan"))
        column = f.when(column == zero, zero).when(f.isnan(column), nan).otherwise(column)
        column = column.cast(to_cast(expr.type))
    added[name] = column
    return name


def _one_partition(df: DataFrame, keys: tuple[str, ...], context: Context) -> DataFrame:
    return df.repartition(1).sortWithinPartitions(*context.ascending(keys))


def _result_type(df: DataFrame, carried: tuple[str, ...], fields: tuple[Field, ...]) -> StructType:
    from pyspark.sql import types as st

    known = {field.name: field for field in df.schema.fields}
    made = [st.StructField(field.name, to_spark(field.type)) for field in fields]
    return st.StructType([*(known[name] for name in carried), *made])
