"""Scripts in a Python of their own, for what needs its own JVM or its own end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from pathlib import Path


class RunScript(Protocol):
    def __call__(
        self, code: str, *args: str, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """The temporary directory of a script: what Spark leaves behind is left here."""
    path = tmp_path / "scratch"
    path.mkdir()
    return path


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """The directory that a script runs in."""
    path = tmp_path / "cwd"
    path.mkdir()
    return path


@pytest.fixture
def run_script(cwd: Path, scratch: Path) -> RunScript:
    """Run code in a fresh Python, with warnings as errors."""

    def run(code: str, *args: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *args],
            capture_output=True,
            text=True,
            cwd=cwd,
            env=script_environment(scratch),
            timeout=timeout,
            check=False,
            # Who runs the tests in the background may ignore Ctrl-C, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    return run


def script_environment(scratch: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MILLPOND_", "SPARK_"))}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "SPARK_SUBMIT_OPTS": os.environ["SPARK_SUBMIT_OPTS"],  # how JVMs of tests start
        "TMPDIR": str(scratch),
    }
