"""Sort, TopK, Head and Tail. Ties fall back on the input's own order, so sorting is stable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.spark.api import is_single_node
from millpond.engine.spark.frame import Frame

if TYPE_CHECKING:
    from millpond.engine.spark.context import Context
    from millpond.plan.order import Head, Sort, Tail, TopK

_LIMIT_MAX = (1 << 31) - 1


def compile_sort(node: Sort, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """A global sort; nothing at all when nobody looks at the order."""
    if not ordered:
        return inputs[0]
    frame = inputs[0].keyed(context)
    orders = context.sort_orders(node.keys, node.schema)
    df = frame.df.orderBy(*orders, *context.ascending(frame.keys))
    visible = Frame(df, node.schema, keys=frame.keys).visible(context)
    return Frame(visible, node.schema, natural=True)


def compile_top_k(node: TopK, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """Spark keeps the best rows of each partition, then the best of those."""
    del ordered
    frame = inputs[0].keyed(context)
    orders = context.sort_orders(node.keys, node.schema)
    df = frame.df.orderBy(*orders, *context.ascending(frame.keys)).limit(min(node.n, _LIMIT_MAX))
    visible = Frame(df, node.schema, keys=frame.keys).visible(context)
    return Frame(visible, node.schema, natural=True)


def compile_head(node: Head, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """The first rows of each partition, then the first of those."""
    del ordered
    frame = inputs[0]
    count = min(node.n, _LIMIT_MAX)
    if frame.natural and is_single_node(context.session):
        return Frame(frame.visible(context).limit(count), node.schema, natural=True)
    # On a cluster a plain limit takes partitions in the order in which they arrive.
    keyed = frame.keyed(context)
    df = keyed.df.orderBy(*context.ascending(keyed.keys)).limit(count)
    visible = Frame(df, node.schema, keys=keyed.keys).visible(context)
    return Frame(visible, node.schema, natural=True)


def compile_tail(node: Tail, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """The first rows of the reverse order."""
    del ordered
    frame = inputs[0].keyed(context)
    reverse = [context.column(key).desc_nulls_first() for key in frame.keys]
    df = frame.df.orderBy(*reverse).limit(min(node.n, _LIMIT_MAX))
    return Frame(df, node.schema, keys=frame.keys)
