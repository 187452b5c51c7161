"""Moments at which a process kills itself: a step of a commit, or a change of the pond's files.

Changes are counted by an audit hook: every file that Python code creates, renames or removes below
the pond is a moment, whichever code does it.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from typing import Any, Final

from millpond.steward.committing import steps

_CHANGES: Final = ("os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True, slots=True)
class Moment:
    """A step (`before:oplog`) that is passed for the n-th time, or the n-th change of a file."""

    step: str = ""
    number: int = 1

    def __str__(self) -> str:
        return f"{self.step} ({self.number})" if self.step else f"change {self.number}"

    def install(self, location: str) -> None:
        """Kill this process at the moment."""
        left = self.number

        def reached() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        if self.step:
            steps.observe(lambda place: reached() if place == self.step else None)
        else:
            watch_changes(location, reached)


def watch_changes(location: str, reached: Any) -> None:
    """Call a function before each change of a file below a directory, in this process."""

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in _CHANGES:
            path = args[1] if event in ("os.link", "os.rename") else args[0]
        elif event == "open" and isinstance(args[2], int) and args[2] & _WRITING:
            path = args[0]
        else:
            return
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(location):
            reached()

    sys.addaudithook(hook)
