"""What must be alike for a command to be the same in another process of its user.

Arguments, environment, directory and streams are handed over. What can't be is compared: the
interpreter, variables that are read when a process starts, limits, and the code itself. pathlib is
not imported here: that would take longer than the rest.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
from typing import Any, Final

from millpond.base.home import state_home

_ONLY_AT_START: Final = (
    "ARROW_",
    "JEMALLOC",
    "LANG",
    "LC_",
    "LD_",
    "MALLOC_",
    "MIMALLOC",
    "OMP_",
    "OPENBLAS",
    "PYTHON",
    "TZ",
)
"""Variables that begin so are looked at by the interpreter and by libraries when they start."""
_LIMITS: Final = ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_NOFILE")


def place() -> str:
    """The socket of the process that waits; its directory is its user's alone."""
    return os.path.join(state_home(), f"ready-{socket.gethostname()}.sock")


def likeness() -> list[Any]:
    """What this process can't hand over; two processes with the same one are alike."""
    root = os.stat("/")
    return [
        [sys.executable, sys.prefix, sys.version, __file__],
        [list(sys.flags), list(sys.warnoptions)],
        sorted([k, v] for k, v in os.environ.items() if k.startswith(_ONLY_AT_START)),
        [list(resource.getrlimit(getattr(resource, name))) for name in _LIMITS],
        [os.getpriority(os.PRIO_PROCESS, 0), sorted(os.getgroups()), root.st_dev, root.st_ino],
    ]


def code() -> list[int]:
    """Changes when code does: the newest of our files, and when something was installed."""
    newest, waiting = 0, [os.path.dirname(os.path.dirname(os.path.dirname(__file__)))]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    newest = max(newest, entry.stat().st_mtime_ns)
                elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                    waiting.append(entry.path)
    installed = [os.stat(p).st_mtime_ns for p in sys.path if p.endswith("-packages")]
    return [newest, *installed]
