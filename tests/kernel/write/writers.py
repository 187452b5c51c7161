"""Starts `worker.py` in processes, and gathers what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[3]


class Writer:
    """One process; `came` and `went` are the ids of commits that it knows to stand."""

    def __init__(
        self, kind: str, location: str, first: int, commits: int, **environment: str
    ) -> None:
        command = [sys.executable, "-m", "tests.kernel.write.worker", kind, location]
        self.process = subprocess.Popen(
            [*command, str(first), str(commits)],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.came: set[int] = set()
        self.went: set[int] = set()

    @property
    def _output(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def wait_ready(self) -> None:
        """Until it begins to write."""
        assert self._output.readline() == "ready\n", self.process.communicate()[1]

    def wait_line(self) -> None:
        """Until a commit stands."""
        self._read(self._output.readline())

    def kill(self) -> None:
        """At once, as the power may go."""
        self.process.kill()
        self._finish()

    def join(self) -> None:
        """To its end, which has to be a good one."""
        errors = self._finish()
        assert self.process.returncode == 0, errors

    def _finish(self) -> str:
        output, errors = self.process.communicate()
        for line in output.splitlines():
            self._read(line)
        return errors

    def _read(self, line: str) -> None:
        if line.startswith("["):
            came, went = json.loads(line)
            self.came |= set(came)
            self.went |= set(went)
