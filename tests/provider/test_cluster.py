"""Pipelines on two executor processes, each in a JVM of its own: `make test-all` runs these."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CLUSTER = "local-cluster[2,1,1024]"

DEMO = """
import sys
import pyarrow.parquet as pq
import millpond as mp
from examples.pipeline import show_pipeline
from millpond.provider import reading, runs

reading.FEW_ROWS = -1  # all that can be is done by the engine that was chosen
runs.WRITTEN_ROWS = 0
pond = mp.create(sys.argv[1] + "/pond")
show_pipeline(pond, days=4)
for number, path in enumerate(["/derived/all", *(
    handle.path for handle in pond.read()["/"].glob("derived/reduced/**/*.series")
)]):
    pq.write_table(pond[path].to_arrow(), f"{sys.argv[1]}/{number}.parquet")
"""


def run(*command: str, **environment: str) -> str:
    answer = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        cwd=ROOT,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr[-2000:]
    return answer.stdout


def test_factories_on_two_executor_processes() -> None:
    said = run(
        *("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "spark and not slow"),
        str(HERE),
        TEST_SPARK_MASTER=CLUSTER,
    )
    assert " passed" in said


def test_the_pipeline_of_the_demo_on_two_executor_processes(tmp_path: Path) -> None:
    for engine in ("arrow", "spark"):
        (tmp_path / engine).mkdir()
        said = run(
            *("-c", DEMO, str(tmp_path / engine)),
            MILLPOND_ENGINE=engine,
            MILLPOND_SPARK_MASTER=CLUSTER,
        )
        assert "7,200 joined rows; the swapped gauge is one column: True" in said
    for number in range(4):
        found, expected = (
            pq.read_table(tmp_path / engine / f"{number}.parquet").to_pylist()
            for engine in ("spark", "arrow")
        )
        assert len(found) == len(expected)
        for row, other in zip(found, expected, strict=True):
            assert row.pop("timestamp") == other.pop("timestamp")
            assert row == pytest.approx(other)
