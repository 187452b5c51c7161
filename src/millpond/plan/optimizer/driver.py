"""Runs the rules over a plan until none of them changes it any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from millpond.plan.node import Plan
from millpond.plan.optimizer.fold_constants import fold_constants
from millpond.plan.optimizer.fuse_filters import fuse_filters
from millpond.plan.optimizer.fuse_topk import fuse_topk
from millpond.plan.optimizer.merge_projects import merge_projects
from millpond.plan.optimizer.order_conjuncts import order_conjuncts
from millpond.plan.optimizer.prune_columns import prune_columns
from millpond.plan.optimizer.push_limits import push_limits
from millpond.plan.optimizer.push_predicates import push_predicates

if TYPE_CHECKING:
    from collections.abc import Iterator

Rule: TypeAlias = Callable[[Plan], Plan]

RULES: Final[tuple[Rule, ...]] = (
    fold_constants,
    push_predicates,
    fuse_filters,
    push_limits,
    fuse_topk,
    merge_projects,
    prune_columns,
    order_conjuncts,
)
"""Every rule, in the order of a round. A rule returns the very same plan if it changes nothing."""

MAX_ROUNDS: Final = 12


@dataclass(frozen=True, slots=True)
class Step:
    """One rule that changed a plan."""

    rule: str
    before: Plan
    after: Plan


def optimize(plan: Plan) -> Plan:
    """A plan that gives the same rows in the same order for less work.

    >>> from millpond.plan.make import values
    >>> print(optimize(values([{"a": 1}]).sort("a").head(3)))
    #0 Values [1 rows] (a: long)
    #1 TopK #0 3 by a
    """
    for step in _steps(plan):
        plan = step.after
    return plan


def optimize_steps(plan: Plan) -> tuple[Step, ...]:
    """Every change on the way to the optimized plan, in order; none if nothing changes."""
    return tuple(_steps(plan))


def _steps(plan: Plan) -> Iterator[Step]:
    schema = plan.schema
    for _ in range(MAX_ROUNDS):
        before_round = plan
        for rule in RULES:
            after = rule(plan)
            if after is not plan:
                assert after.schema == schema, f"{rule.__name__} changed the schema of a plan"
                yield Step(rule.__name__, plan, after)
                plan = after
        if plan is before_round:
            return
