"""Random plans: what rules keep, and that the optimized plan gives the same rows in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given, note, settings
from tests.plan.optimizer.random_plans import plans
from tests.plan.optimizer.test_executed import rows

from millpond.base.errors import EvaluationError
from millpond.plan.codec import dumps, loads
from millpond.plan.optimizer import RULES, optimize
from millpond.plan.run import engine_named
from millpond.testing.engine.suite import can_run

if TYPE_CHECKING:
    from millpond.plan.node import Plan


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@settings(max_examples=60)
@given(plan=plans())
def test_a_rule_keeps_the_schema_and_is_idempotent(rule: Any, plan: Plan) -> None:
    note(str(plan))
    once = rule(plan)
    note(str(once))
    assert once.schema == plan.schema
    assert rule(once) is once


@settings(max_examples=60)
@given(plan=plans(steps=9))
def test_optimizing_reaches_a_fixpoint_that_can_be_shipped(plan: Plan) -> None:
    note(str(plan))
    best = optimize(plan)
    note(str(best))
    assert best.schema == plan.schema
    assert optimize(best) is best
    assert loads(dumps(best)) == best


@settings(max_examples=100)
@given(plan=plans(steps=7))
def test_the_same_rows_in_the_same_order(plan: Plan) -> None:
    """An optimized plan may fail less often than the plan as written, never more often."""
    arrow = engine_named("arrow")
    assume(can_run(plan, arrow))
    note(str(plan))
    try:
        expected = rows(plan, arrow)
    except EvaluationError:
        return
    best = optimize(plan)
    note(str(best))
    assert rows(best, arrow) == expected
    for rule in RULES:
        once = rule(plan)
        if once is not plan:
            note(f"{rule.__name__}\n{once}")
            assert rows(once, arrow) == expected
