"""The pond suite on a small scale: what it measures is there, and held to its targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.options import Options
from bench.pond.suite import run

if TYPE_CHECKING:
    from pathlib import Path


def test_a_small_transaction_beside_deltalake(tmp_path: Path) -> None:
    options = Options(only="write_small", data=tmp_path)
    report = run(options, progress=lambda text: None)

    assert [result.contender for result in report.results] == ["pond", "deltalake append"]
    assert not report.has_errors
    assert [goal.limit for goal in report.goals] == [2.0]
    assert all(goal.actual is not None and goal.actual > 0 for goal in report.goals)
