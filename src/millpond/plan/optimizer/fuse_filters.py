"""One filter instead of several on top of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.bound import conjoin, conjuncts
from millpond.plan.optimizer.sharing import rebuilt, shared_nodes
from millpond.plan.raising import can_raise
from millpond.plan.rows import Filter
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.bound import BoundExpr
    from millpond.plan.node import Plan


def fuse_filters(plan: Plan) -> Plan:
    """Filters right on top of each other become one, the lowest one's conjuncts first.

    An upper filter that can raise stays apart: fused, it could meet rows for which the lower
    predicate is null.

    >>> from millpond.plan.expr import col
    >>> from millpond.plan.make import values
    >>> print(fuse_filters(values([{"a": 1}]).filter(col("a") > 0).filter(col("a") < 9)))
    #0 Values [1 rows] (a: long)
    #1 Filter #0 ((a > 0) and (a < 9))
    """
    order = topological(plan)
    shared = shared_nodes(order)
    built: dict[int, Plan] = {}
    # The conjuncts of a run of filters are gathered and joined once, at the top of the run.
    gathered: dict[int, tuple[Plan, list[BoundExpr]]] = {}
    inside = _inside_runs(order, shared)
    for node in order:
        if isinstance(node, Filter):
            below, parts = gathered.pop(id(node.input), (built[id(node.input)], []))
            run = [*parts, *conjuncts(node.predicate)] if parts else []
            if id(node) in inside:
                parts = run or list(conjuncts(node.predicate))
                gathered[id(node)] = (below, parts)
                built[id(node)] = node
                continue
            if run:
                built[id(node)] = Filter(below, conjoin(tuple(run)))
                continue
        built[id(node)] = rebuilt(node, built)
    return built[id(plan)]


def _inside_runs(order: list[Plan], shared: frozenset[int]) -> frozenset[int]:
    """The filters that will be part of the filter above them."""
    return frozenset(
        id(node.input)
        for node in order
        if isinstance(node, Filter)
        and isinstance(node.input, Filter)
        and id(node.input) not in shared
        and not can_raise(node.predicate)
    )
