"""Columns and struct members that nobody needs are neither read, computed nor carried.

First, needs go down: from the root, which gives everything, to the sources (`prune_needs.py`). Then
the plan is built anew from the sources up, each node over what its inputs still give
(`prune_build.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.optimizer.needs import Need, everything
from millpond.plan.optimizer.prune_build import MembersDisagree, build
from millpond.plan.optimizer.prune_needs import input_needs
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.node import Plan


def prune_columns(plan: Plan) -> Plan:
    """Read, compute and carry only what the plan's own columns depend on.

    >>> from millpond.plan import aggregates as agg
    >>> from millpond.plan.expr import col, path
    >>> from millpond.plan.sources import File, Scan
    >>> from millpond.plan.types import LONG, STRING, Struct
    >>> schema = Struct.of(a=LONG, b=LONG, s=Struct.of(x=LONG, y=STRING))
    >>> scan = Scan("parquet", (File("f"),), schema)
    >>> print(prune_columns(scan.filter(path("s.x") > 3).select(n=col("a") + 1)))
    #0 Scan parquet [1 file] (a: long, s: struct<x: long>)
    #1 Filter #0 (s.x > 3)
    #2 Project #1 n := (a + 1)
    """
    try:
        return _prune(plan, whole_unions=False)
    except MembersDisagree:
        # Some input of a union can't drop struct members, so none of them does.
        return _prune(plan, whole_unions=True)


def _prune(plan: Plan, *, whole_unions: bool) -> Plan:
    order = topological(plan)
    needs: dict[int, Need] = {id(plan): everything()}
    for node in reversed(order):
        asked = input_needs(node, needs[id(node)], whole_unions=whole_unions)
        for child, need in zip(node.children, asked, strict=True):
            known = needs.setdefault(id(child), need)
            if known is not need:
                known.merge(need)
    built: dict[int, Plan] = {}
    for node in order:
        inputs = tuple(built[id(child)] for child in node.children)
        built[id(node)] = build(node, inputs, needs[id(node)])
    return built[id(plan)]
