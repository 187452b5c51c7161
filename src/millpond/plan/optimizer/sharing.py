"""What rules share when they rebuild a plan: which nodes have several parents, and copies.

A rule that moves something below a node with two parents would have to split it in two, and what
was computed once would be computed twice. So such nodes are where moving ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millpond.plan.node import Plan


def shared_nodes(nodes: Iterable[Plan]) -> frozenset[int]:
    """The ids of those nodes that are inputs more than once."""
    seen: set[int] = set()
    shared: set[int] = set()
    for node in nodes:
        for child in node.children:
            (shared if id(child) in seen else seen).add(id(child))
    return frozenset(shared)


def rebuilt(node: Plan, built: Mapping[int, Plan]) -> Plan:
    """The node over what its inputs became; itself where they did not change."""
    return with_inputs(node, tuple(built[id(child)] for child in node.children))


def with_inputs(node: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """The node over these inputs; itself where they are the ones that it has."""
    if all(a is b for a, b in zip(node.children, inputs, strict=True)):
        return node
    changed: Plan = node.with_children(inputs)
    return changed
