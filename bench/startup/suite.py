"""Starting up: each command in a new process, the best of many, less what bare Python takes.

No peak memory here: what the kernel reports of such a short child includes its parent's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.result import Goal, Report, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.options import Options

REPEAT: Final = 15
LIMIT_MS: Final = 150
BARE: Final = "python -c pass"
COMMANDS: Final = {
    BARE: (sys.executable, "-c", "pass"),
    "import pyarrow": (sys.executable, "-c", "import pyarrow"),
    "import millpond": (sys.executable, "-c", "import millpond"),
    "pond --help": (str(Path(sys.executable).with_name("pond")), "--help"),
}
HELD: Final = ("import millpond", "pond --help")


def run(options: Options, *, progress: Callable[[str], None]) -> Report:
    """Measure what was asked for; bare Python always is, since the others are held to it."""
    repeat = options.repeat or REPEAT
    results = []
    for name, command in COMMANDS.items():
        if name == BARE or options.wants(name):
            progress(f"startup: {name}")
            results.append(_best(name, command, repeat=repeat))
    bare = results[0].wall
    goals = tuple(
        Goal(f"{r.contender} over bare Python", _over(r.wall, bare), LIMIT_MS, " ms")
        for r in results
        if r.contender in HELD
    )
    over = (f"{r.contender} {_over(r.wall, bare) or 0.0:.0f} ms" for r in results[1:])
    notes = (f"best of {repeat}; wall time over bare Python: {', '.join(over)}",)
    return Report("startup", tuple(results), goals, notes)


def _best(name: str, command: tuple[str, ...], *, repeat: int) -> Result:
    runs = []
    for _ in range(repeat):
        begin = time.perf_counter()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as it:
            _, status, used = os.wait4(it.pid, 0)
            it.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - begin
        if it.returncode != 0:
            return Result("startup", name, peer=BARE, error=f"exit code {it.returncode}")
        runs.append((wall, used.ru_utime + used.ru_stime))
    wall, cpu = (min(figures) for figures in zip(*runs, strict=True))
    return Result("startup", name, cpu=cpu, wall=wall, peer=None if name == BARE else BARE)


def _over(wall: float | None, bare: float | None) -> float | None:
    return None if wall is None or bare is None else (wall - bare) * 1000
