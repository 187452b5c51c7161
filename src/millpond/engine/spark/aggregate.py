"""Aggregate: native grouping; the order of the keys is restored only when it is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.spark.frame import Frame
from millpond.engine.spark.zero import key_column, with_one_zero
from millpond.plan.bound import BoundCall

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.expressions import Expressions
    from millpond.engine.spark.parts import Cut
    from millpond.plan.aggregates import BoundMeasure
    from millpond.plan.rows import Aggregate


def compile_aggregate(
    node: Aggregate, inputs: list[Frame], context: Context, *, ordered: bool
) -> Frame:
    """One row a group."""
    frame = inputs[0]
    if any(measure.function in ("first", "last") for measure in node.measures):
        frame = frame.keyed(context)
    over = context.over(frame.schema)
    keys = [key_column(key.expr, over, context).alias(key.name) for key in node.keys]
    measures = [
        _measure(measure, frame, over, context).alias(measure.name) for measure in node.measures
    ]
    if context.cut is not None and context.cut.node is node:
        return _cut(node, frame, context.cut, keys, measures, context)
    df = _grouped(frame.df, keys, measures)
    if not ordered:
        return Frame(df, node.schema)
    if not keys:
        return Frame(df, node.schema, natural=True)
    return _in_order(df, node, context)


def _in_order(df: DataFrame, node: Aggregate, context: Context, *before: str) -> Frame:
    """Groups in the order of their keys, or of hidden columns before those."""
    hidden = {context.hidden(): context.column(key.name) for key in node.keys}
    return Frame(df.withColumns(hidden), node.schema, keys=(*before, *hidden))


def _cut(
    node: Aggregate,
    frame: Frame,
    cut: Cut,
    keys: list[Column],
    measures: list[Column],
    context: Context,
) -> Frame:
    """The same groups after one exchange, by the part of time that they are in."""
    part = context.hidden()
    time = next(k for k, each in zip(keys, node.keys, strict=True) if each.name == cut.key)
    rows = frame.df.withColumn(part, cut.start_of(time, context))
    rows = rows.repartition(cut.tasks, context.column(part))
    df = _grouped(rows, [context.column(part), *keys], measures)
    return _in_order(df, node, context, part)


def _grouped(df: DataFrame, keys: list[Column], measures: list[Column]) -> DataFrame:
    if not measures:
        return df.select(*keys).distinct()
    return df.groupBy(*keys).agg(*measures) if keys else df.agg(*measures)


def _measure(measure: BoundMeasure, frame: Frame, over: Expressions, context: Context) -> Column:
    f = context.functions
    where = None if measure.where is None else over.column(measure.where)
    if measure.function in ("first", "last"):
        assert measure.arg is not None
        ordinal = _ordinal(frame, context)
        chosen = ordinal if where is None else f.when(where, ordinal)
        pick = f.min_by if measure.function == "first" else f.max_by
        value = over.column(measure.arg)
        if _only_values(measure):
            values: Column = pick(value, chosen)
            return values
        # In a struct, so that a null is a value like others.
        picked: Column = pick(f.struct(value.alias("v")), chosen)
        return picked.getField("v")
    value = f.lit(1) if measure.arg is None else over.column(measure.arg)
    if where is not None:
        value = f.when(where, value)
    name = "avg" if measure.function == "mean" else measure.function
    made: Column = getattr(f, name)(value)
    if measure.function in ("min", "max") and measure.arg is not None:
        return with_one_zero(made, measure.arg.type, context)
    return made


def _only_values(measure: BoundMeasure) -> bool:
    """Return whether a row counts only where its value is not null: then no struct is needed."""
    where = measure.where
    parts = [where] if where is not None else []
    if isinstance(where, BoundCall) and where.function == "and":
        parts = list(where.args)
    return any(
        isinstance(part, BoundCall)
        and part.function == "is_not_null"
        and part.args[0] == measure.arg
        for part in parts
    )


def _ordinal(frame: Frame, context: Context) -> Column:
    """Return the keys as one value that has their order.

    A struct puts nulls first, we put them last. Numbers of rows are never null, and Spark sums up
    plain numbers several times as fast as structs, by hash instead of by a sort.
    """
    f = context.functions
    if frame.is_numbered:
        only: Column = context.column(frame.keys[0])
        return only
    parts = []
    for number, key in enumerate(frame.keys):
        column = context.column(key)
        parts += [column.isNull().alias(f"n{number}"), column.alias(f"k{number}")]
    made: Column = f.struct(*parts)
    return made
