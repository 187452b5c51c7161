"""What holds for every rule and every case: schema, idempotence, a fixpoint, the wire form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.plan.optimizer.cases import CASES, Case
from tests.plan.optimizer.sources import Sources

from millpond.plan.codec import dumps, loads
from millpond.plan.optimizer import RULES, optimize, optimize_steps
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.plan.optimizer import Rule

cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@cases
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_keeps_the_schema_and_is_idempotent(case: Case, rule: Rule, tmp_path: Path) -> None:
    plan = case.plan(Sources(tmp_path))
    once = rule(plan)
    assert once.schema == plan.schema
    assert rule(once) is once


@cases
def test_optimizing_reaches_a_fixpoint(case: Case, tmp_path: Path) -> None:
    plan = case.plan(Sources(tmp_path))
    best = optimize(plan)
    assert best.schema == plan.schema
    assert optimize(best) is best
    assert [rule.__name__ for rule in RULES if rule(best) is not best] == []


@cases
def test_an_optimized_plan_can_be_shipped(case: Case, tmp_path: Path) -> None:
    best = optimize(case.plan(Sources(tmp_path)))
    assert loads(dumps(best)) == best


@cases
def test_steps_lead_from_the_plan_to_the_optimized_plan(case: Case, tmp_path: Path) -> None:
    plan = case.plan(Sources(tmp_path))
    steps = optimize_steps(plan)
    current = plan
    for step in steps:
        assert step.before is current
        assert step.after != step.before
        current = step.after
    assert current == optimize(plan)


@cases
def test_what_was_shared_is_not_copied(case: Case, tmp_path: Path) -> None:
    plan = case.plan(Sources(tmp_path))
    best = optimize(plan)
    scans = [node for node in topological(best) if node.kind in ("Scan", "Values")]
    before = [node for node in topological(plan) if node.kind in ("Scan", "Values")]
    assert len(scans) <= len(before)
