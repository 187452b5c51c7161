"""Small versions of the campaigns; `make fuzz` runs the large ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.fuzz import campaign_damage, campaign_inputs, campaign_kills

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fuzz.tally import Tally

SEED = 3


def check(tally: Tally, expected: int) -> None:
    assert not tally.failures, "\n".join(map(str, tally.failures))
    assert tally.total == expected


@pytest.mark.parametrize("kind", campaign_inputs.QUICK)
def test_inputs(kind: str, tmp_path: Path) -> None:
    count = campaign_inputs.QUICK[kind]
    tally = campaign_inputs.run(SEED, {kind: count}, tmp_path)
    check(tally, count)
    if kind not in ("yaml", "url"):
        assert tally.count("compared") > count // 10, tally.table()
    assert tally.count("refused") > 0


@pytest.mark.slow
def test_damage(tmp_path: Path) -> None:
    counts = campaign_damage.QUICK
    tally = campaign_damage.run(SEED, counts, tmp_path)
    check(tally, counts["flips"] + counts["others"])
    assert tally.count("found on read") > 0


def test_kills(tmp_path: Path) -> None:
    counts = campaign_kills.QUICK
    tally = campaign_kills.run(SEED, counts, tmp_path)
    check(tally, sum(counts.values()))


def test_a_wrong_answer_is_noticed(tmp_path: Path) -> None:
    """The judge of damage tells a table that was exchanged for another one."""
    prepared = campaign_damage.prepare(tmp_path, with_spark=False)
    answers = dict(prepared.truth)
    answers["cat /table"] = answers["cat /table@v1"]
    from tests.fuzz.damage.reads import wrong

    assert wrong(answers, prepared.truth) == ["cat /table"]
