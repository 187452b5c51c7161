"""The command that a user starts, where a process is ready to be it: see `keeper.py`.

It imports little, not even pathlib, since that is what it is for. Whatever is in the way, the
command runs here.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

YES: Final = b"y"
"""What the other side says if the command is its own now."""
STREAMS: Final = (0, 1, 2)
SIGNALS: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""What reaches the command when it reaches the one who waits for it."""
_ANSWER_SECONDS: Final = 2.0
_LOST: Final = 1


def handed_over(argv: Sequence[str]) -> int | None:
    """Have a command run in the process that is ready: its exit code; None if it has to run here.

    >>> handed_over(["pond", "list"]) is None  # it begins quickly as it is
    True
    """
    if not _gains(argv[1:]) or None in (sys.stdin, sys.stdout, sys.stderr):
        return None
    if os.environ.get("MILLPOND_WARM_USE") == "never":
        return None
    try:
        connection = _connection()
    except OSError:  # nobody is there
        return None
    with connection:
        try:
            if not _is_taken(connection, argv):
                return None
        except OSError:
            return None
        return _wait(connection)


def _gains(args: Sequence[str]) -> bool:
    """Whether it is a command that reads rows. One that asks, as the shell does, is not."""
    return "cat" in args or ("sql" in args and any(" " in each for each in args))


def _connection() -> socket.socket:
    from millpond.cli.ready.likeness import place

    path = place()
    there = os.stat(path)
    if there.st_uid != os.geteuid() or not stat.S_ISSOCK(there.st_mode):
        raise ConnectionError(f"{path} is not ours")
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_ANSWER_SECONDS)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_taken(connection: socket.socket, argv: Sequence[str]) -> bool:
    import json

    from millpond.cli.ready.likeness import likeness

    content = json.dumps({"like": likeness(), **_given(argv)}).encode()
    # The streams go with the first bytes.
    socket.send_fds(connection, [len(content).to_bytes(8, "big")], STREAMS)
    connection.sendall(content)
    return connection.recv(1) == YES


def _given(argv: Sequence[str]) -> dict[str, Any]:
    umask = os.umask(0o077)
    os.umask(umask)
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return {
        "argv": list(argv),
        "path": sys.path,
        "directory": os.getcwd(),
        "environment": dict(os.environ),
        "umask": umask,
        "encodings": [[each.encoding, each.errors] for each in streams],
        "ignored": [each for each in SIGNALS if signal.getsignal(each) is signal.SIG_IGN],
    }


def _wait(connection: socket.socket) -> int:
    """The exit code of the command, which gets our signals; if it died of one, so do we."""

    def forward(number: int, frame: FrameType | None) -> None:
        del frame
        connection.send(bytes([number]))

    def pause(number: int, frame: FrameType | None) -> None:
        forward(signal.SIGSTOP, frame)
        os.kill(os.getpid(), signal.SIGSTOP)
        forward(signal.SIGCONT, frame)
        del number

    connection.settimeout(None)
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, forward)
    signal.signal(signal.SIGTSTP, pause)
    said = connection.recv(4)
    if not said:
        sys.stderr.write("error: the process that ran the command is gone\n")
        return _LOST
    status = int.from_bytes(said, "big")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status)
