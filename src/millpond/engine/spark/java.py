"""Finding the Java that Spark would use, before Spark looks for it and fails in a shell script.

`find_java()` looks where Spark looks (`JAVA_HOME`, then `PATH`), asks the program for its version
and says what to install when there is none that will do. `session.py` calls it before it starts.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.base.errors import EngineUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

MINIMUM = 17
"""The oldest Java that Spark 4 runs on."""

_HINT = (
    f"install Java {MINIMUM} or newer (Debian: apt-get install openjdk-{MINIMUM}-jre-headless), "
    "or set JAVA_HOME to one"
)
# `java -version` starts a JVM; one that takes longer than this is not going to run Spark.
_TIMEOUT_SECONDS = 60
_VERSION = re.compile(r'version "([^"]+)"')


@dataclass(frozen=True, slots=True)
class Java:
    """A Java program that runs, and the version it reports."""

    path: Path
    version: str

    @property
    def major(self) -> int:
        """The feature release: 17 for `17.0.15`, 8 for `1.8.0_402`.

        >>> Java(Path("java"), "17.0.15").major, Java(Path("java"), "1.8.0_402").major
        (17, 8)
        """
        return major_version(self.version)


def major_version(version: str) -> int:
    """The feature release in a version text; 0 when there is none.

    >>> [major_version(v) for v in ("21", "17.0.15", "1.8.0_402", "22-ea", "none")]
    [21, 17, 8, 22, 0]
    """
    numbers = [int(n) for n in re.findall(r"\d+", version)[:2]]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The Java that Spark would use; an error that says what was found when it won't do."""
    environ = os.environ if environ is None else environ
    path, source = _locate(environ)
    version = _ask_version(path, source, environ)
    java = Java(path, version)
    if java.major < MINIMUM:
        raise _unavailable(f"Java {version} at {path} ({source}) is too old for Spark")
    return java


def _locate(environ: Mapping[str, str]) -> tuple[Path, str]:
    if home := environ.get("JAVA_HOME"):
        # Spark does not fall back to PATH either: a wrong JAVA_HOME is an error, not a hint.
        path = Path(home) / "bin" / "java"
        if not os.access(path, os.X_OK):
            raise _unavailable(f"JAVA_HOME is {home}, but there is no program at {path}")
        return path, "from JAVA_HOME"
    found = shutil.which("java", path=environ.get("PATH", os.defpath))
    if found is None:
        raise _unavailable("no Java was found: JAVA_HOME is not set and PATH has no java")
    return Path(found), "from PATH"


def _ask_version(path: Path, source: str, environ: Mapping[str, str]) -> str:
    try:
        answer = subprocess.run(
            [path, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            env=dict(environ),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unavailable(f"{path} ({source}) does not run: {error}") from error
    said = (answer.stderr + answer.stdout).strip()
    found = _VERSION.search(said)
    if answer.returncode != 0 or found is None:
        first = said.splitlines()[0] if said else f"exit code {answer.returncode}"
        raise _unavailable(f"{path} ({source}) does not tell its version: {first}")
    return found[1]


def _unavailable(message: str) -> EngineUnavailableError:
    return EngineUnavailableError(message, engine="spark", hint=_HINT)
