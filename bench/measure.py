"""Measuring: each contender does each piece of work in a process of its own.

So peak memory and CPU time are that contender's alone, its JVM's included. In that process
(`worker.py`) the work is prepared (a session is started, a connection opened), run to warm up, and
then run several times; the run that took the least CPU time counts. CPU seconds are user and system
time over all threads of the process and its descendants: on a busy machine they say more than the
wall clock does. Peak memory is that of the whole process, preparation and warming included. After
the runs that are measured, the work is done once more to take a digest of its result, so that no
contender is measured on other work than its peers.

Two contenders on a JVM are also measured in turns in one process (`compare`). Its compiler goes on
for dozens of runs, and the same query in two processes differed by a fifth and more. In turns both
meet the same JVM; figures are medians, and the ratio has the interval that its median lies in with
95 % confidence.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.digest import Digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT: Final = Path(__file__).resolve().parents[1]
TIMEOUT_SECONDS: Final = 1800


@dataclass(frozen=True, slots=True)
class Work:
    """Work that is ready to be done: `run` is what is measured, `digest` describes its result."""

    run: Callable[[], None]
    digest: Callable[[], Digest]


@dataclass(frozen=True, slots=True)
class Job:
    """A function that prepares work, by `module:name`, and its arguments, for a new process.

    Of at least `repeat` runs the best counts; of short work there are more, so that about
    `seconds` are spent on it.
    """

    prepare: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    repeat: int = 3
    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """The best of a job's runs, or why there is none."""

    cpu: float | None = None
    wall: float | None = None
    peak_mb: float | None = None
    digest: Digest | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two jobs done in turns: median seconds of each, CPU ratio of the first to the second."""

    cpu: tuple[float, float] = (0.0, 0.0)
    wall: tuple[float, float] = (0.0, 0.0)
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    error: str | None = None


def measure(job: Job) -> Measurement:
    """Do a job in a new process and say what it took."""
    found = _in_new_process("best", asdict(job))
    digest = found.pop("digest", None)
    return Measurement(**found, digest=None if digest is None else Digest.from_dict(digest))


def compare(job: Job, other: Job, *, rounds: int) -> Comparison:
    """Do two jobs in turns in one new process; a round is one run of each."""
    found = _in_new_process("turns", {"jobs": [asdict(job), asdict(other)], "rounds": rounds})
    return Comparison(**found)


def _in_new_process(way: str, what: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        answer = Path(directory) / "answer.json"
        command = [sys.executable, "-m", "bench.worker", way, json.dumps(what), str(answer)]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {TIMEOUT_SECONDS} s"}
        if not answer.exists():
            said = done.stderr.strip().splitlines() or ["nothing was said"]
            return {"error": f"exit code {done.returncode}: {said[-1]}"}
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        return found
