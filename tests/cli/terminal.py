"""Calls of `pond` whose standard output or error is a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path


def on_terminal(
    *args: str, cwd: Path, stream: Literal["stdout", "stderr"], columns: int = 80
) -> tuple[int, str, str]:
    """The exit code, what was shown on the terminal, and what went to the other stream."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    other = "stderr" if stream == "stdout" else "stdout"
    command = [sys.executable, "-m", "millpond.cli", *args]
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**environment, "TERM": "dumb"},
        **{stream: theirs, other: subprocess.PIPE},  # type: ignore[call-overload]
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # the process has ended, and its terminal with it
            break
        if not more:
            break
        seen += more
    os.close(ours)
    both = dict(zip(("stdout", "stderr"), process.communicate(), strict=True))
    return process.returncode, seen.decode().replace("\r\n", "\n"), both[other].decode()
