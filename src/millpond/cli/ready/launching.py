"""Starting the process that is ready, beside the warm engine."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import suppress
from typing import Final

from millpond.cli.ready.likeness import place

_START_SECONDS: Final = 20.0
_TOO_LONG: Final = 100
"""The names of sockets have room for little more."""


def launch() -> None:
    """Start it, unless it is there; commands begin by themselves where it can't be."""
    if is_there() or len(place()) > _TOO_LONG:
        return
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(  # until it listens: it goes on in the background
            [sys.executable, "-m", "millpond.cli.ready.keeper"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            timeout=_START_SECONDS,
            check=False,
        )


def is_there() -> bool:
    """Whether somebody listens."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(place())
        except OSError:
            return False
        return True
