"""Whose row order matters: asked from the root down, so that nothing is numbered for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.order import Head, Sample, Shuffle, Tail, Take, TopK
from millpond.plan.rows import Aggregate, FilterOrdered, Join
from millpond.plan.streams import Sql, StatefulFunction, Window
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.node import Plan

_BY_POSITION = (Head, Tail, Take, Sample, Shuffle, TopK, FilterOrdered, StatefulFunction)
_TIES_SHARE = ("rank", "dense_rank")


def order_demands(plan: Plan, *, ordered: bool) -> dict[int, bool]:
    """For each node, by `id`: whether the order of its rows is used by anyone above it."""
    nodes = topological(plan)
    demands = dict.fromkeys(map(id, nodes), False)
    demands[id(plan)] = ordered
    for node in reversed(nodes):
        for position, child in enumerate(node.children):
            if _needs(node, position, needed=demands[id(node)]):
                demands[id(child)] = True
    return demands


def _needs(node: Plan, position: int, *, needed: bool) -> bool:
    if isinstance(node, _BY_POSITION):
        return True
    if isinstance(node, Sql):
        return False
    if isinstance(node, Aggregate):
        return any(measure.function in ("first", "last") for measure in node.measures)
    if isinstance(node, Window):
        return needed or any(call.function not in _TIES_SHARE for call in node.calls)
    if isinstance(node, Join) and node.how in ("semi", "anti"):
        return needed and position == 0
    return needed
