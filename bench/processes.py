"""CPU seconds and peak memory of a process and all its descendants, as Linux counts them.

A JVM that Spark starts is a child of the Python process, so the tree is what a contender needs.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """The process and its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) is not None:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:  # grows while it is walked
        found.extend(children.get(pid, ()))
    return found


def cpu_seconds(root: int) -> float:
    """User and system time of the tree so far, its threads and its ended children included."""
    return sum(_cpu(pid) for pid in tree(root))


def peak_megabytes(root: int, *, alone: bool = False) -> float:
    """The sum of each living process's largest resident memory (VmHWM), or that of the root."""
    return sum(_peak_kilobytes(pid) for pid in ([root] if alone else tree(root))) / 1024


def _cpu(pid: int) -> float:
    fields = _stat(pid)
    if fields is None:
        return 0.0
    ended = (int(fields[13]) + int(fields[14])) / _TICKS
    try:
        # The process's own CPU clock (CPUCLOCK_SCHED) counts nanoseconds; `stat` counts 10 ms.
        return ended + time.clock_gettime(~pid << 3 | 2)
    except OSError:  # it has ended since
        return ended


def forget_peaks(root: int) -> None:
    """Count from here on: what was used before, and is not any more, is not counted."""
    for pid in tree(root):
        with suppress(OSError):  # it has ended meanwhile
            Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def _peak_kilobytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def _stat(pid: int) -> list[str] | None:
    """The fields after the command's name, which may hold spaces and parentheses."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()
