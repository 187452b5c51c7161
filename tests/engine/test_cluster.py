"""The Spark half of the parity suite on two executor processes, once, in a JVM of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_parity_on_two_executor_processes() -> None:
    env = {**os.environ, "TEST_SPARK_MASTER": "local-cluster[2,1,1024]"}
    answer = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"),
            *(
                "-m",
                "spark and not slow",
                str(HERE / "test_parity.py"),
                str(HERE / "test_sources.py"),
            ),
        ],
        capture_output=True,
        text=True,
        env=env,
        cwd=HERE.parents[1],
        check=False,
    )
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr[-2000:]
    assert " passed" in answer.stdout
