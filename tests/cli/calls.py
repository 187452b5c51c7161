"""How tests call `pond`: in this process, or in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from millpond.cli.main import pond

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


class Cli:
    """Calls of `pond`, through the same door as the real command."""

    def __call__(self, *args: str, stdin: str | bytes | None = None) -> Result:
        """The outcome, whatever it is."""
        return CliRunner().invoke(pond, list(args), input=stdin)

    def ok(self, *args: str, stdin: str | bytes | None = None) -> str:
        """What it writes to standard output; it must succeed."""
        result = self(*args, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *args: str) -> Any:
        """The same, read as JSON."""
        return json.loads(self.ok("--json", *args))

    def fails(self, *args: str, code: int) -> str:
        """What it writes to standard error; it must end with this code and write no data."""
        result = self(*args)
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        return result.stderr


@dataclass(frozen=True, slots=True)
class Real:
    """Calls of `pond` in a process of its own."""

    cwd: Path

    def __call__(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "millpond.cli", *args],
            capture_output=True,
            text=True,
            env={**os.environ, **env},
            cwd=self.cwd,
            check=False,
        )
