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


def negated(root: BoundExpr) -> frozenset[int]:
    """The ids of all that stands below a `not`, which Spark turns into the opposite comparison."""
    found: set[int] = set()
    seen: set[tuple[int, bool]] = set()
    todo = [(root, False)]
    while todo:
        node, below = todo.pop()
        if (id(node), below) in seen:
            continue
        seen.add((id(node), below))
        if below:
            found.add(id(node))
        below = below or (isinstance(node, BoundCall) and node.function == "not")
        todo.extend((child, below) for child in node.children)
    return frozenset(found)


def unjudged(node: BoundExpr, args: list[Column], api: Api, *, is_negated: bool) -> list[Column]:
    """The arguments of a comparison, columns of floating point as sums where that matters."""
    if not isinstance(node, BoundCall) or node.function not in _COMPARISONS:
        return args
    type_, place = node.args[0].type, _BELOW.get(node.function)
    if not t.is_fractional(type_):
        return args
    others = [arg for number, arg in enumerate(node.args) if number != place]
    if place is not None and not is_negated and all(map(_is_safe, others)):
        return args
    return [
        column + literal(0.0, type_, api) if _is_column(arg) else column
        for arg, column in zip(node.args, args, strict=True)
    ]


def _is_column(expr: BoundExpr) -> bool:
    inner = _below_casts(expr)
    return isinstance(inner, BoundPath) and t.is_fractional(inner.type)


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
