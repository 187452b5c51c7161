"""Window: Spark's own window functions; ties are taken in the input's order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.spark.context import sort_order
from millpond.engine.spark.frame import Frame
from millpond.engine.spark.types import to_cast
from millpond.engine.spark.zero import key_column
from millpond.plan.types import DOUBLE

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.expressions import Expressions
    from millpond.plan.streams import Window, WindowCall

_TIES_SHARE = ("rank", "dense_rank")
_MOST_ROWS = (1 << 31) - 2
"""Frames and offsets beyond this are those of all rows: Spark's windows count by 32 bits."""
_FRAMED = {"first_value": "first", "last_value": "last", "mean": "avg"}


def compile_window(node: Window, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """The input's rows with one more column a call."""
    frame = inputs[0]
    if ordered or any(call.function not in _TIES_SHARE for call in node.calls):
        frame = frame.keyed(context)
    over = context.over(frame.schema)
    calls = [_call(call, frame, over, context).alias(call.name) for call in node.calls]
    names = context.columns(frame.schema.names)
    keys = frame.keys if ordered else ()
    df = frame.df.select(*names, *calls, *context.columns(keys))
    return Frame(df, node.schema, keys=keys)


def _call(call: WindowCall, frame: Frame, over: Expressions, context: Context) -> Column:
    f = context.functions
    made: Column
    window = context.api.window_by([key_column(expr, over, context) for expr in call.partition_by])
    orders = [sort_order(over.column(key.expr), key) for key in call.order_by]
    if call.function in _TIES_SHARE:
        # Without an order all rows tie; Spark wants to be told one nevertheless.
        window = window.orderBy(*(orders or [f.lit(1)]))
        made = getattr(f, call.function)().over(window)
        return made.cast(to_cast(call.type))
    window = window.orderBy(*orders, *context.ascending(frame.keys))
    if call.function == "row_number":
        made = f.row_number().over(window)
        return made.cast(to_cast(call.type))
    value = f.lit(1) if call.arg is None else over.column(call.arg)
    if call.function in ("lag", "lead"):
        if abs(call.offset) > _MOST_ROWS:  # no partition has so many
            made = f.lit(None).cast(to_cast(call.type))
            return made
        made = getattr(f, call.function)(value, call.offset).over(window)
        return made
    if call.function == "mean":
        value = value.cast(to_cast(DOUBLE))
    bounds = context.api.window
    start, end = call.start, call.end
    if start is None or start < -_MOST_ROWS:
        start = bounds.unboundedPreceding
    if end is None or end > _MOST_ROWS:
        end = bounds.unboundedFollowing
    function = getattr(f, _FRAMED.get(call.function, call.function))
    made = function(value).over(window.rowsBetween(start, end))
    return made
