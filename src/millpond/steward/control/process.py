"""Which process a transaction is of, so that `recover` can tell a dead one from one at work."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping

OPEN: WeakValueDictionary[str, object] = WeakValueDictionary()
"""The transactions that this process is at work on, by their ids."""


def this_process() -> dict[str, Any]:
    """Where this process can be found again."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "started": _started(pid)}


def is_at_work(txn_id: str, process: Mapping[str, Any]) -> bool | None:
    """Whether a process may still be busy with a transaction.

    None if it is one of another machine, or was never told.
    """
    pid = process.get("pid")
    if not isinstance(pid, int) or process.get("host") != socket.gethostname():
        return None
    if pid == os.getpid():
        return txn_id in OPEN
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is there, and somebody else's
        return True
    # Numbers of processes are used again, but not with the same time of birth.
    return process.get("started") in (None, _started(pid))


def _started(pid: int) -> str | None:
    """When a process was started, in the words of the system; None where it does not tell."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in the second field may hold spaces and parentheses; the time is the 22nd.
    fields = text.rpartition(")")[2].split()
    if fields[0] == "Z":  # it has ended, and its parent has not noticed yet
        return None
    return fields[19]


def _forget() -> None:
    """A forked child is at work on nothing yet."""
    OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
