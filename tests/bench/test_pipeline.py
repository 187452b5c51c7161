"""The suite of pipelines, on little data and without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.options import Options
from bench.pipeline.suite import run

if TYPE_CHECKING:
    from pathlib import Path


def test_an_append(tmp_path: Path) -> None:
    options = Options(rows=2000, only="append_1_percent", data=tmp_path)
    report = run(options, progress=lambda _: None)
    assert [result.error for result in report.results] == [None, None]
    assert [result.contender for result in report.results] == ["pond", "the first time"]
    assert [goal.limit for goal in report.goals] == [0.05]
