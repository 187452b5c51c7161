"""Comparisons of floating point that Spark's Parquet reader must not judge by itself.

It would leave out row groups with rows that are wanted: their limits do not tell of NaN, which is
larger than every number, and their dictionaries tell -0.0 from 0.0. Of a sum it knows nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.engine.spark.expressions.literals import literal
from millpond.plan import types as t
from millpond.plan.bound import BoundCall, BoundCast, BoundExpr, BoundLiteral, BoundPath

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millpond.engine.spark.api import Api

_BELOW: Final = {"eq": 0, "in": 0, "lt": 0, "le": 0, "gt": 1, "ge": 1}
"""Comparisons that are false for NaN, and which of their arguments the column is then."""
_COMPARISONS: Final = frozenset({*_BELOW, "ne", "eq_null_safe"})


def bare(predicate: BoundExpr) -> frozenset[int]:
    """The ids of the parts of a filter's predicate that stand below `and` and `or` alone.

    Any other comparison Spark may turn into its opposite, which NaN meets: below a `not`, or in a
    projection below a filter that asks for rows where it is not true.
    """
    found: set[int] = set()
    others: set[int] = set()
    todo = [(predicate, True)]
    while todo:
        node, is_bare = todo.pop()
        seen = found if is_bare else others
        if id(node) in seen:
            continue
        seen.add(id(node))
        is_bare = is_bare and isinstance(node, BoundCall) and node.function in ("and", "or")
        todo.extend((child, is_bare) for child in node.children)
    return frozenset(found - others)


def unjudged(node: BoundExpr, args: list[Column], api: Api, *, is_bare: bool) -> list[Column]:
    """The arguments of a comparison, columns of floating point as sums where that matters."""
    if not isinstance(node, BoundCall) or node.function not in _COMPARISONS:
        return args
    type_, place = node.args[0].type, _BELOW.get(node.function)
    if not t.is_fractional(type_):
        return args
    others = [arg for number, arg in enumerate(node.args) if number != place]
    if place is not None and is_bare and all(map(_is_safe, others)):
        return args
    return [
        column + literal(0.0, type_, api) if _is_column(arg) else column
        for arg, column in zip(node.args, args, strict=True)
    ]


def _is_column(expr: BoundExpr) -> bool:
    inner = _below_casts(expr)
    # What a lambda compares is not handed to the reader.
    return isinstance(inner, BoundPath) and inner.scope == "row" and t.is_fractional(inner.type)


def _is_safe(expr: BoundExpr) -> bool:
    """Whether it is a number but zero, or null."""
    inner = _below_casts(expr)
    if not isinstance(inner, BoundLiteral):
        return False
    value = inner.value
    return value is None or (value == value and value != 0)


def _below_casts(expr: BoundExpr) -> BoundExpr:
    while isinstance(expr, BoundCast):
        expr = expr.arg
    return expr
