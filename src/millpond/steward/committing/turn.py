"""A queue for writers of one machine, so that those who were overtaken are not overtaken for ever.

It is only polite: commits are safe by the conditional put alone. Who can't have a turn soon, since
a process that has it stands still, or the disk knows no locks, goes on without. A process that dies
gives its turn back.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Final

PLACE: Final = "cache/turn"
PATIENCE_S: Final = 2.0
SHORTEST_WAIT: Final = 0.001
LONGEST_WAIT: Final = 0.02


class Turn:
    """One writer's turn, which it need not have. Ponds in object stores have no queue."""

    def __init__(self, location: str) -> None:
        self._path = None if "://" in location else Path(location) / PLACE
        self._file: int | None = None

    @property
    def is_mine(self) -> bool:
        """Whether nobody else has it."""
        return self._file is not None

    def take(self) -> bool:
        """Wait for it, but not for ever; whether it came."""
        if self._path is None or self._file is not None:
            return self.is_mine
        try:
            self._path.parent.mkdir(exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return False
        until, wait = time.monotonic() + PATIENCE_S, SHORTEST_WAIT
        while not _lock(file):
            if time.monotonic() > until:
                os.close(file)
                return False
            time.sleep(random.uniform(0, wait))
            wait = min(LONGEST_WAIT, wait * 2)
        self._file = file
        return True

    def give(self) -> None:
        """Let the next one go on."""
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)


def _lock(file: int) -> bool:
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):  # no such thing here, or somebody else has it
        return False
    return True
