"""What does not depend on any row is computed once, here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.bound import BoundLiteral, conjoin, conjuncts
from millpond.plan.optimizer.empty import empty_like
from millpond.plan.optimizer.simplify import simplify
from millpond.plan.raising import can_raise
from millpond.plan.rewrite import map_expressions
from millpond.plan.rows import Filter, FilterOrdered, Project
from millpond.plan.tree import topological, transform

if TYPE_CHECKING:
    from millpond.plan.bound import BoundExpr
    from millpond.plan.node import Plan


def fold_constants(plan: Plan) -> Plan:
    """Compute literals; a filter that is always true goes, one that never is leaves no rows.

    >>> from millpond.plan.expr import col, lit
    >>> from millpond.plan.make import values
    >>> rows = values([{"a": 1}])
    >>> print(fold_constants(rows.filter((col("a") > lit(1) + 1) & lit(True))))
    #0 Values [1 rows] (a: long)
    #1 Filter #0 (a > 2)
    >>> print(fold_constants(rows.filter(lit(None))))
    #0 Values [0 rows] (a: long)
    """
    return transform(plan, _fold)


def _fold(node: Plan) -> Plan:
    if isinstance(node, Filter):
        return _fold_filter(node)
    if isinstance(node, Project):
        return map_expressions(node, simplify)
    return map_expressions(node, _fold_inside)


def _fold_inside(expr: BoundExpr) -> BoundExpr:
    # Engines may expect keys and arguments to depend on rows, so a bare literal is not made here.
    simple = simplify(expr)
    return expr if isinstance(simple, BoundLiteral) else simple


def _fold_filter(node: Filter) -> Plan:
    predicate = simplify(node.predicate)
    parts = conjuncts(predicate)
    constants = [part.value for part in parts if isinstance(part, BoundLiteral)]
    if any(value is not True for value in constants):
        # One part that is never true is enough, unless another one has an error to report, or
        # someone wants to know what a row filter below has seen.
        sees = any(isinstance(below, FilterOrdered) for below in topological(node))
        if not sees and not any(can_raise(part) for part in parts):
            return empty_like(node) or node
    elif constants:
        predicate = conjoin(tuple(p for p in parts if not isinstance(p, BoundLiteral)))
        if isinstance(predicate, BoundLiteral):
            return node.input
    return node if predicate is node.predicate else Filter(node.input, predicate)
