"""The process that is ready: `python -m millpond.cli.ready.keeper`, started by `pond engine start`.

It has imported all of Millpond but what Spark needs, runs no threads, and forks twice for each
command: one process becomes the command, the other looks after it. It ends with the warm engine.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from millpond.cli.ready.handing import SIGNALS, STREAMS, YES
from millpond.cli.ready.likeness import code, likeness, place
from millpond.engine.spark.warm import state

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO: Final = b"n"
_LOOK_SECONDS: Final = 1.0
_ASKING_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it was handed over."""

    given: dict[str, Any]
    streams: list[int]

    def become(self) -> None:
        """Make this process the command's own: its streams, directory, environment and signals."""
        for number, stream in zip(STREAMS, self.streams, strict=True):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin, sys.stdout, sys.stderr = (
            _stream(number, *encoding)
            for number, encoding in zip(STREAMS, self.given["encodings"], strict=True)
        )
        sys.argv = self.given["argv"]
        sys.path[:] = self.given["path"]
        importlib.invalidate_caches()
        os.environ.clear()
        os.environ.update(self.given["environment"])
        time.tzset()
        os.chdir(self.given["directory"])
        os.umask(self.given["umask"])
        for each in SIGNALS:
            usual = signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL
            signal.signal(each, signal.SIG_IGN if each in self.given["ignored"] else usual)


def _stream(number: int, encoding: str, errors: str) -> io.TextIOWrapper:
    """A standard stream, as the interpreter makes it."""
    mode = "rb" if number == 0 else "wb"
    raw = open(number, mode, closefd=False)  # noqa: SIM115 - it stays open
    lines = number == 2 or os.isatty(number)
    return io.TextIOWrapper(raw, encoding=encoding, errors=errors, line_buffering=lines)


def keep(engine: state.State) -> Command | None:
    """Be ready as long as the engine lives. In the process that is a command, that one."""
    path, me = place(), (likeness(), code())
    with suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen()
    if os.fork() != 0:
        os._exit(0)  # who has started it knows now that it is ready
    mine = os.stat(path).st_ino
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for who looks after commands
    gc.collect()
    gc.freeze()  # what is shared with commands stays so
    while _lives(engine):
        if not select.select([listener], [], [], _LOOK_SECONDS)[0]:
            continue
        connection = listener.accept()[0]
        if os.fork() == 0:
            listener.close()
            return _serve(connection, me)
        connection.close()
    with suppress(FileNotFoundError):
        if os.stat(path).st_ino == mine:  # else it is the next one's
            os.unlink(path)
    return None


def _lives(engine: state.State) -> bool:
    try:
        os.kill(engine.pid, 0)
    except OSError:
        return False
    return state.read() == engine


def _serve(connection: socket.socket, me: tuple[list[Any], list[int]]) -> Command:
    """Take a command: return in the process that is the command; the other one looks after it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command = _asked(connection)
    # As it came over the wire: a list there is a list here.
    if json.loads(json.dumps((command.given["like"], code()))) != json.loads(json.dumps(me)):
        connection.sendall(_NO)
        os._exit(0)
    connection.sendall(YES)
    ended, living = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ended)  # the other end stays open as long as this process lives
        connection.close()
        return command
    for each in (living, *command.streams):
        os.close(each)
    _look_after(child, connection, ended)
    os._exit(0)


def _asked(connection: socket.socket) -> Command:
    connection.settimeout(_ASKING_SECONDS)
    try:
        head, streams, _, _ = socket.recv_fds(connection, 8, len(STREAMS))
        size = int.from_bytes(head, "big")
        with connection.makefile("rb") as said:
            given = json.loads(said.read(size))
    except (OSError, ValueError):  # it went away, or is none of ours
        os._exit(1)
    connection.settimeout(None)
    return Command(given, streams)


def _look_after(child: int, connection: socket.socket, ended: int) -> None:
    """Pass signals on, and at the end say how it ended. With who asked, the command goes."""
    while ended not in _readable(connection.fileno(), ended):
        said = connection.recv(1)
        if not said:
            os.kill(child, signal.SIGKILL)
            break
        os.kill(child, said[0])
    _, status = os.waitpid(child, 0)
    with suppress(OSError):
        connection.sendall(status.to_bytes(4, "big"))


def _readable(*files: int) -> list[int]:
    return select.select(files, [], [])[0]


# What is imported before


def _imported() -> Iterator[str]:
    """Our modules, but those that need Spark."""
    import millpond

    for found in pkgutil.walk_packages(millpond.__path__, "millpond."):
        if not found.name.startswith(_WITHOUT) or found.name in _BUT:
            yield found.name


_WITHOUT: Final = (
    "millpond.engine.spark.",
    "millpond.surfaces.",
    "millpond.testing",
)
_BUT: Final = ("millpond.engine.spark.engine", "millpond.engine.spark.warm.client")


def _get_ready() -> None:
    from millpond.cli.nopandas import do_without_pandas

    do_without_pandas()
    for name in _imported():
        if not name.endswith("__main__"):
            with suppress(ImportError):  # an extra that is not installed
                importlib.import_module(name)


def main() -> None:
    """Be ready, and then be a command."""
    engine = state.read()
    if engine is None:
        return
    _get_ready()
    command = keep(engine)
    if command is None:
        return
    command.become()
    from millpond.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
