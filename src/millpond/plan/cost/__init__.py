"""What a plan would cost: rows, bytes and time, by simple heuristics and whatever is known.

Where to look: `selectivity.py` (how many rows a predicate keeps), `expressions.py` (what a row
costs), `sizes.py` (how many rows a node gives), `estimate.py` (all of it, node by node),
`numbers.py` (as text). What nothing is known about is None, and explain shows it as unknown.
"""

from __future__ import annotations

from millpond.plan.cost.estimate import Estimate, estimate, estimate_nodes
from millpond.plan.cost.expressions import expression_cost
from millpond.plan.cost.selectivity import selectivity
from millpond.plan.cost.statistics import Statistics, node_statistics

__all__ = [
    "Estimate",
    "Statistics",
    "estimate",
    "estimate_nodes",
    "expression_cost",
    "node_statistics",
    "selectivity",
]
