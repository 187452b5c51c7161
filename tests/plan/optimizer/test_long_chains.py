"""Plans of thousands of nodes are optimized without recursion and without quadratic work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.bound import conjuncts
from millpond.plan.expr import col
from millpond.plan.make import values
from millpond.plan.optimizer import optimize
from millpond.plan.order import Head
from millpond.plan.rows import Filter, Project
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.plan.node import Plan

LENGTH = 3_000


def chain(step: Callable[[Plan, int], Plan]) -> Plan:
    plan = values([{"a": 1, "b": 2}])
    for number in range(LENGTH):
        plan = step(plan, number)
    return plan


def test_filters_become_one() -> None:
    best = optimize(chain(lambda plan, n: plan.filter(col("a") > n)))
    assert isinstance(best, Filter)
    assert len(topological(best)) == 2
    assert len(conjuncts(best.predicate)) == LENGTH


def test_selections_vanish() -> None:
    best = optimize(chain(lambda plan, _: plan.select("a", "b")))
    assert len(topological(best)) == 1


def test_computations_stay_and_limits_sink() -> None:
    best = optimize(
        chain(lambda plan, n: plan.head(n + 7) if n % 2 else plan.with_columns(a=col("a") + 1))
    )
    order = topological(best)
    assert sum(isinstance(node, Project) for node in order) == LENGTH // 2
    assert not any(isinstance(node, Head) for node in order), "one row is fewer than any limit"


def test_filters_that_raise_sink_through_computations() -> None:
    def step(plan: Plan, n: int) -> Plan:
        return plan.filter(1 / col("a") > n) if n % 2 else plan.with_columns(b=col("b") + 1)

    best = optimize(chain(step))
    assert sum(isinstance(node, Project) for node in topological(best)) == LENGTH // 2
    assert best.schema == values([{"a": 1, "b": 2}]).schema
