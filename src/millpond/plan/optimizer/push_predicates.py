"""Filters as near to the sources as they can go, so that less is read and carried.

Predicates travel downwards in *stages*: what stood in one filter stays together and in order, and
a stage is only applied to what the stages before it let through. A predicate that can raise moves
only to where it sees no more rows than it saw. `push_below.py` says what passes which node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from millpond.plan.bound import conjoin, conjuncts
from millpond.plan.optimizer.push_below import passage
from millpond.plan.optimizer.sharing import shared_nodes, with_inputs
from millpond.plan.raising import can_raise
from millpond.plan.rows import Filter
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.bound import BoundExpr
    from millpond.plan.node import Plan
    from millpond.plan.optimizer.push_below import Passage

MAX_CONJUNCTS: Final = 16
"""More than this are not carried through a node: each is rewritten there, and long chains of
filters and projections would take quadratic time."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Conjuncts that stood in one filter, and that filter as long as it is whole."""

    parts: tuple[BoundExpr, ...]
    origin: Filter | None = None


Stages: TypeAlias = tuple[Stage, ...]


def push_predicates(plan: Plan) -> Plan:
    """Move filters below projections, sorts, unions, joins and groups where that is sound.

    >>> from millpond.plan.expr import col
    >>> from millpond.plan.make import values
    >>> print(push_predicates(values([{"a": 1}]).select(b=col("a")).filter(col("b") > 0)))
    #0 Values [1 rows] (a: long)
    #1 Filter #0 (a > 0)
    #2 Project #1 b := a
    """
    order = topological(plan)
    shared = shared_nodes(order)
    arriving: dict[int, Stages] = {}
    staying: dict[int, Stages] = {}
    edges: dict[tuple[int, int], Stages] = {}
    for node in reversed(order):
        stages = arriving.get(id(node), ())
        if isinstance(node, Filter):
            leaving: tuple[Stages, ...] = ((Stage(conjuncts(node.predicate), node), *stages),)
        else:
            staying[id(node)], leaving = _pass(stages, node)
        for number, (child, below) in enumerate(zip(node.children, leaving, strict=True)):
            if id(child) in shared:
                edges[id(node), number] = below
            else:
                arriving[id(child)] = below
    return _build(order, staying, edges)


def _pass(stages: Stages, node: Plan) -> tuple[Stages, tuple[Stages, ...]]:
    """What stays above a node, and what goes on to each of its inputs."""
    count = len(node.children)
    ways = passage(node) if stages else None
    if ways is None or sum(len(stage.parts) for stage in stages) > MAX_CONJUNCTS:
        return stages, ((),) * count
    staying: list[Stage] = []
    leaving: list[list[Stage]] = [[] for _ in range(count)]
    for stage in stages:
        stays, goes = _split(stage, ways, blocked=bool(staying), count=count)
        if stays:
            whole = len(stays) == len(stage.parts)
            staying.append(stage if whole else Stage(tuple(stays)))
        for target, parts in zip(leaving, goes, strict=True):
            if parts:
                target.append(Stage(tuple(parts)))
    return tuple(staying), tuple(tuple(target) for target in leaving)


def _split(
    stage: Stage, ways: Passage, *, blocked: bool, count: int
) -> tuple[list[BoundExpr], list[list[BoundExpr]]]:
    stays: list[BoundExpr] = []
    goes: list[list[BoundExpr]] = [[] for _ in range(count)]
    for part in stage.parts:
        # Past a predicate that stays, this one would see rows that the other removes.
        held = (blocked or bool(stays)) and can_raise(part)
        moved = None if held else ways(part)
        if moved is None:
            stays.append(part)
            continue
        for number, expr in moved.items():
            goes[number].append(expr)
    return stays, goes


def _build(
    order: list[Plan], staying: dict[int, Stages], edges: dict[tuple[int, int], Stages]
) -> Plan:
    built: dict[int, Plan] = {}
    for node in order:
        inputs = tuple(
            _apply(edges.get((id(node), number), ()), built[id(child)])
            for number, child in enumerate(node.children)
        )
        if isinstance(node, Filter):
            built[id(node)] = inputs[0]
        else:
            built[id(node)] = _apply(staying[id(node)], with_inputs(node, inputs))
    return built[id(order[-1])]


def _apply(stages: Stages, plan: Plan) -> Plan:
    for stage in stages:
        if stage.origin is not None and stage.origin.input is plan:
            plan = stage.origin
        else:
            plan = Filter(plan, conjoin(stage.parts))
    return plan
