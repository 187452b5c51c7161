"""Join: native equi-joins; hidden keys of both sides carry the order through."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from millpond.engine.spark.api import balanced
from millpond.engine.spark.frame import Frame
from millpond.engine.spark.zero import key_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context
    from millpond.plan.bound import BoundExpr
    from millpond.plan.rows import Join


def compile_join(node: Join, inputs: list[Frame], context: Context, *, ordered: bool) -> Frame:
    """Rows of both sides with equal keys. The sides may share column names in semi and anti."""
    left, right = inputs
    one_side = node.how in ("semi", "anti")
    if ordered:
        left = left.keyed(context)
        left = _marked(left, context) if node.how == "full" else left
        right = right if one_side else right.keyed(context)
    left_keys = left.keys if ordered else ()
    right_keys = right.keys if ordered and not one_side else ()
    # The same node may stand on both sides: hidden names of the right one are made anew.
    fresh = tuple(context.hidden() for _ in right_keys)
    left_df, on_left = _with_join_keys(left, [a for a, _ in node.keys], left_keys, context)
    carried = () if one_side else right.schema.names
    right_df, on_right = _join_side(
        right,
        [b for _, b in node.keys],
        carried,
        dict(zip(right_keys, fresh, strict=True)),
        context,
    )
    condition = _condition(on_left, on_right, node, context)
    joined = left_df.join(right_df, condition, _HOW[node.how])
    keys = (*left_keys, *fresh)
    df = joined.select(*context.columns((*node.schema.names, *keys)))
    return Frame(df, node.schema, keys=keys)


_HOW = {"inner": "inner", "left": "left", "full": "full", "semi": "left_semi", "anti": "left_anti"}


def _marked(left: Frame, context: Context) -> Frame:
    """One more key, first, that is null in rows of the right side alone: those come last.

    The keys that are there do not tell: the order of groups, say, has a null of its own.
    """
    mark = context.hidden()
    df = left.df.withColumn(mark, context.functions.lit(0))
    return Frame(df, left.schema, left.natural, (mark, *left.keys))


def _with_join_keys(
    frame: Frame, exprs: list[BoundExpr], keys: tuple[str, ...], context: Context
) -> tuple[DataFrame, list[str]]:
    return _join_side(frame, exprs, frame.schema.names, {key: key for key in keys}, context)


def _join_side(
    frame: Frame,
    exprs: list[BoundExpr],
    names: tuple[str, ...],
    keys: dict[str, str],
    context: Context,
) -> tuple[DataFrame, list[str]]:
    """The side's columns, its order under these names, and what it is joined by."""
    over = context.over(frame.schema)
    on = [context.hidden() for _ in exprs]
    df = frame.df.select(
        *context.columns(names),
        *(context.column(old).alias(new) for old, new in keys.items()),
        *(key_column(expr, over, context).alias(n) for expr, n in zip(exprs, on, strict=True)),
    )
    return df, on


def _condition(left: list[str], right: list[str], node: Join, context: Context) -> Column:
    parts = []
    for a, b in zip(left, right, strict=True):
        x, y = context.column(a), context.column(b)
        parts.append(x.eqNullSafe(y) if node.nulls_equal else x == y)
    return balanced(parts, operator.and_)
