"""Limits as near to the sources as they can go, so that scans stop early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.plan.optimizer.empty import empty_like
from millpond.plan.optimizer.sharing import shared_nodes, with_inputs
from millpond.plan.order import Head, Sample, Tail, Take, TopK
from millpond.plan.rows import Aggregate, ParseJson, Project, Union
from millpond.plan.sources import Values
from millpond.plan.streams import StatefulFunction
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.node import Plan


@dataclass(frozen=True, slots=True)
class Limit:
    """How many rows are wanted, and the node that says so as long as it says just that."""

    n: int
    origin: Head | None = None


def push_limits(plan: Plan) -> Plan:
    """Move heads below what keeps rows one by one, and copy them into a union's inputs.

    >>> from millpond.plan.expr import col
    >>> from millpond.plan.make import values
    >>> rows = values([{"a": 1}, {"a": 2}, {"a": 3}])
    >>> print(push_limits(rows.select(b=col("a") + 1).head(2).head(5)))
    #0 Values [3 rows] (a: long)
    #1 Head #0 2
    #2 Project #1 b := (a + 1)
    """
    order = topological(plan)
    shared = shared_nodes(order)
    arriving: dict[int, Limit] = {}
    staying: dict[int, Limit] = {}
    edges: dict[tuple[int, int], Limit] = {}
    for node in reversed(order):
        limit = arriving.get(id(node))
        if isinstance(node, Head):
            limit = Limit(node.n, node) if limit is None or node.n <= limit.n else limit
            goes: Limit | None = limit
        elif limit is None:
            continue
        else:
            goes = _goes_on(node, limit)
            if goes is None or isinstance(node, Union):
                staying[id(node)] = limit
        if goes is None:
            continue
        for number, child in enumerate(node.children):
            if id(child) in shared:
                edges[id(node), number] = goes
            else:
                arriving[id(child)] = goes
    return _build(order, staying, edges)


def _goes_on(node: Plan, limit: Limit) -> Limit | None:
    """The limit for the node's inputs: a row of these nodes needs the input's rows up to it."""
    if isinstance(node, Project | ParseJson | StatefulFunction):
        return limit
    return Limit(limit.n) if isinstance(node, Union) else None


def _build(
    order: list[Plan], staying: dict[int, Limit], edges: dict[tuple[int, int], Limit]
) -> Plan:
    built: dict[int, Plan] = {}
    for node in order:
        inputs = tuple(
            _apply(edges.get((id(node), number)), built[id(child)])
            for number, child in enumerate(node.children)
        )
        if isinstance(node, Head):
            built[id(node)] = inputs[0]
        else:
            now = _fuse_tail(with_inputs(node, inputs))
            built[id(node)] = _apply(staying.get(id(node)), now)
    return built[id(order[-1])]


def _apply(limit: Limit | None, plan: Plan) -> Plan:
    if limit is None:
        return plan
    most = most_rows(plan)
    if most is not None and most <= limit.n:
        return plan
    if isinstance(plan, TopK):
        return TopK(plan.input, plan.keys, limit.n)
    if limit.n == 0:
        empty = empty_like(plan)
        if empty is not None:
            return empty
    if limit.origin is not None and limit.origin.input is plan and limit.origin.n == limit.n:
        return limit.origin
    return Head(plan, limit.n)


def _fuse_tail(node: Plan) -> Plan:
    if not isinstance(node, Tail):
        return node
    below = node.input
    if isinstance(below, Tail):
        return below if below.n <= node.n else Tail(below.input, node.n)
    most = most_rows(below)
    if most is not None and most <= node.n:
        return below
    return (empty_like(node) or node) if node.n == 0 else node


def most_rows(plan: Plan) -> int | None:
    """How many rows a node gives at most, where that shows in the node itself."""
    if isinstance(plan, Values):
        return int(plan.data.num_rows)
    if isinstance(plan, Head | TopK | Tail):
        return plan.n
    if isinstance(plan, Take):
        return len(plan.indices)
    if isinstance(plan, Sample):
        return plan.n
    return 1 if isinstance(plan, Aggregate) and not plan.keys else None
