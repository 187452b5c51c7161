"""Temporary directories that do not outlive their process for long, however it ends.

Each holds a file that its process has locked. The next process that makes one removes those whose
lock is free: a process that was killed could not.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "millpond-"
OWNER: Final = "owner.lock"
_held: dict[str, int] = {}


def make_scratch(kind: str = "") -> Path:
    """Return a new temporary directory, and remove those of processes that are gone."""
    sweep_scratch()
    path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-" if kind else PREFIX))
    handle = os.open(path / "new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    (path / "new").rename(path / OWNER)  # under this name it is locked from the beginning
    _held[str(path)] = handle
    return path


def remove_scratch(path: Path) -> None:
    """Remove a directory of this process; never raises."""
    shutil.rmtree(path, ignore_errors=True)
    handle = _held.pop(str(path), None)
    if handle is not None:
        os.close(handle)


def sweep_scratch() -> list[Path]:
    """Remove the directories of this user's processes that are gone, and return them."""
    swept = []
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        names = [entry.path for entry in entries if entry.name.startswith(PREFIX)]
        for path in map(Path, names):
            if str(path) not in _held and _is_left(path):
                shutil.rmtree(path, ignore_errors=True)
                swept.append(path)
    return swept


def _is_left(path: Path) -> bool:
    """Whether the process of a directory is gone."""
    try:
        handle = os.open(path / OWNER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # not one of these, of another user, or just being made
        return False
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)
