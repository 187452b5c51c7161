"""The first rows of a sort without sorting everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.optimizer.sharing import rebuilt, shared_nodes
from millpond.plan.order import Head, Sort, TopK
from millpond.plan.rows import Project
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.node import Plan


def fuse_topk(plan: Plan) -> Plan:
    """A head of a sort becomes a top-k, also through projections between them.

    >>> from millpond.plan.make import values
    >>> print(fuse_topk(values([{"a": 1}]).sort("a").select("a").head(3)))
    #0 Values [1 rows] (a: long)
    #1 TopK #0 3 by a
    #2 Project #1 a
    """
    order = topological(plan)
    shared = shared_nodes(order)
    # A projection or sort with two parents is kept as it is, for the other one.
    kept = {id(node) for node in order if id(node) in shared}
    survivors: set[int] = set(kept)

    def fuse(node: Plan) -> Plan:
        if not isinstance(node, Head):
            return node
        passed: list[Project] = []
        below = node.input
        while isinstance(below, Project) and id(below) not in survivors:
            passed.append(below)
            below = below.input
        if id(below) in survivors:
            return node
        if isinstance(below, Sort):
            fused: Plan = TopK(below.input, below.keys, node.n)
        elif isinstance(below, TopK):
            fused = below if below.n <= node.n else TopK(below.input, below.keys, node.n)
        else:
            return node
        for project in reversed(passed):
            fused = project.with_children((fused,))
        return fused

    built: dict[int, Plan] = {}
    for node in order:
        built[id(node)] = fuse(rebuilt(node, built))
        if id(node) in kept:
            survivors.add(id(built[id(node)]))
    return built[id(plan)]
