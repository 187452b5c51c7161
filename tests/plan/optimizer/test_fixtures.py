"""Each rule's before and after, as text. UPDATE_FIXTURES=1 writes what it is now."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.plan.optimizer.cases import CASES, Case
from tests.plan.optimizer.rules import BY_NAME
from tests.plan.optimizer.sources import Sources

from millpond.plan.text import format_plan

FIXTURES = Path(__file__).parent.parent / "fixtures" / "optimizer"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_before_and_after(case: Case, tmp_path: Path) -> None:
    before = case.plan(Sources(tmp_path))
    after = BY_NAME[case.rule](before)
    text = (
        f"{case.rule}\n\nbefore\n{format_plan(before)}\n\nafter\n"
        f"{format_plan(after) if after is not before else 'the same'}\n"
    )
    file = FIXTURES / f"{case.name}.txt"
    if os.environ.get("UPDATE_FIXTURES"):
        file.write_text(text)
    assert file.read_text() == text
    assert (after is not before) == case.changes


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} == set(BY_NAME)


def test_every_fixture_has_a_case() -> None:
    assert {file.stem for file in FIXTURES.iterdir()} == {case.name for case in CASES}
