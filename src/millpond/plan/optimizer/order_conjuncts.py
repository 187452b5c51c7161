"""Within a filter, what is cheap and removes much comes first."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from millpond.plan.bound import BoundCall, conjoin, conjuncts
from millpond.plan.cost.expressions import expression_cost
from millpond.plan.cost.selectivity import selectivity
from millpond.plan.cost.statistics import node_statistics
from millpond.plan.optimizer.sharing import rebuilt
from millpond.plan.raising import can_raise
from millpond.plan.rows import Filter
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.bound import BoundExpr
    from millpond.plan.cost.statistics import Statistics
    from millpond.plan.node import Plan

_RANGES = frozenset({"lt", "le", "gt", "ge"})
_MOST_KEPT = 0.5
"""What a range is taken to keep at most."""


def order_conjuncts(plan: Plan) -> Plan:
    """Order the parts of each filter by cost per removed row; equals stay in their order.

    A part that can raise stays behind everything that stood before it: those parts may be what
    keeps it from raising.

    >>> from millpond.plan.expr import col
    >>> from millpond.plan.make import values
    >>> rows = values([{"a": 1, "s": "x"}])
    >>> print(order_conjuncts(rows.filter(col("s").like("%x%") & (col("a") == 1))))
    #0 Values [1 rows] (a: long, s: string)
    #1 Filter #0 ((a = 1) and like(s, '%x%'))
    """
    order = topological(plan)
    known = node_statistics(plan)
    built: dict[int, Plan] = {}
    for node in order:
        now = rebuilt(node, built)
        if isinstance(node, Filter):
            assert isinstance(now, Filter)
            now = _ordered(now, known[id(node.input)])
        built[id(node)] = now
    return built[id(plan)]


def _ordered(node: Filter, known: Statistics) -> Filter:
    parts = conjuncts(node.predicate)
    if len(parts) < 2:
        return node
    numbers = _schedule(parts, [_rank(part, known) for part in parts])
    if numbers == list(range(len(parts))):
        return node
    return Filter(node.input, conjoin(tuple(parts[number] for number in numbers)))


def _rank(part: BoundExpr, known: Statistics) -> float:
    """Cost for each row that is removed.

    That a range removes little is never sure: it is judged as if values were spread evenly, and
    mostly they are not. A cheap part that comes too early costs less than a dear one that does.
    """
    kept = selectivity(part, known)
    if isinstance(part, BoundCall) and part.function in _RANGES:
        kept = min(kept, _MOST_KEPT)
    return float("inf") if kept >= 1 else expression_cost(part) / (1 - kept)


def _schedule(parts: tuple[BoundExpr, ...], ranks: list[float]) -> list[int]:
    """The parts by rank, one that can raise only once all before it have been placed."""
    raising = [can_raise(part) for part in parts]
    ready = [(ranks[i], i) for i in range(len(parts)) if not raising[i]]
    heapq.heapify(ready)
    placed = [False] * len(parts)
    first_open, waiting = 0, -1
    result: list[int] = []
    while len(result) < len(parts):
        while first_open < len(parts) and placed[first_open]:
            first_open += 1
        if raising[first_open] and waiting != first_open:
            waiting = first_open
            heapq.heappush(ready, (ranks[first_open], first_open))
        _, number = heapq.heappop(ready)
        placed[number] = True
        result.append(number)
    return result
