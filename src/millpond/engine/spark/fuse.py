"""Chains made shorter before they become DataFrames, since Spark walks its plans recursively.

Filters are gathered by `frame.py`. Here heads go below projections, a head over a head becomes one,
and so does a projection over one that only chooses or renames columns. The rest is the optimizer's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millpond.plan.bound import BoundExpr, BoundNamed, BoundPath
from millpond.plan.order import Head
from millpond.plan.paths import Name
from millpond.plan.rows import Project
from millpond.plan.tree import transform

if TYPE_CHECKING:
    from millpond.plan.node import Plan


def fuse(plan: Plan) -> Plan:
    """The same rows by fewer nodes."""
    return transform(plan, _fuse_one)


def _fuse_one(node: Plan) -> Plan:
    if isinstance(node, Head):
        return _fuse_head(node)
    if isinstance(node, Project) and isinstance(node.input, Project):
        lower = {column.name: column.expr for column in node.input.columns}
        if all(isinstance(expr, BoundPath) for expr in lower.values()):
            columns = tuple(
                BoundNamed(column.name, _substitute(column.expr, lower)) for column in node.columns
            )
            return Project(node.input.input, columns)
    return node


def _fuse_head(node: Head) -> Plan:
    below = node.input
    if isinstance(below, Project):
        inner = below.input
        if isinstance(inner, Head):
            return Project(Head(inner.input, min(node.n, inner.n)), below.columns)
        return Project(Head(inner, node.n), below.columns)
    return Head(below.input, min(node.n, below.n)) if isinstance(below, Head) else node


def _substitute(expr: BoundExpr, lower: dict[str, BoundExpr]) -> BoundExpr:
    def one(part: BoundExpr) -> BoundExpr:
        if isinstance(part, BoundPath) and part.scope == "row":
            first = part.steps[0]
            assert isinstance(first, Name)
            below = lower[first.name]
            assert isinstance(below, BoundPath)
            return replace(part, steps=(*below.steps, *part.steps[1:]))
        return part

    return transform(expr, one)
