"""Starting and stopping the warm engine, and how it is: what `pond engine` does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import EngineError, EngineUnavailableError
from millpond.engine.spark.conf import is_local, master_url
from millpond.engine.spark.java import find_java
from millpond.engine.spark.warm import state
from millpond.engine.spark.warm.client import Warm
from millpond.engine.spark.warm.server import ALREADY_THERE

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.base.settings import Settings

_START_SECONDS: Final = 180
_STOP_SECONDS: Final = 30
_LOOK_SECONDS: Final = 0.1
_TAIL_LINES: Final = 12


def start(settings: Settings) -> tuple[dict[str, Any], bool]:
    """Start a warm engine with the settings of this process: how it is, and whether it is new.

    One that runs with the same settings will do; one with others has to be stopped first.
    """
    master = master_url(settings.spark)
    if not is_local(master):
        raise EngineUnavailableError(
            f"spark.master is {master.partition('/;')[0]}: a warm engine is one of this machine",
            engine="spark",
            hint="leave spark.master away, or set it to local[*]",
        )
    find_java()
    is_new = not state.is_alive()
    if is_new:
        _launch()
    status = _wait()
    other = differences(settings)
    if other:
        raise EngineError(
            f"a warm engine with another {', '.join(other[:3])} runs already",
            engine="spark",
            hint="stop it first: pond engine stop",
        )
    return status, is_new


def status() -> dict[str, Any] | None:
    """How the engine is; None if there is none that answers."""
    there = state.read()
    if there is None or not state.is_alive():
        return None
    warm = Warm(there)
    if not warm.answers():
        return None
    found: dict[str, Any] = warm.ask({"do": "status"})
    return found


def differences(settings: Settings) -> list[str]:
    """The settings in which the engine differs from these."""
    there = state.read()
    if there is None:
        return []
    return state.differences(state.parts(settings, there.token), there.parts)


def stop() -> bool:
    """Stop the engine, and what runs on it; False if there was none."""
    there = state.read()
    if not state.is_alive():
        if there is not None:
            state.remove(there)
        return False
    if there is None:
        raise EngineError(
            "the warm engine is being started", engine="spark", hint="stop it when it is there"
        )
    warm = Warm(there)
    if warm.answers():
        warm.ask({"do": "stop"})
    else:
        os.kill(there.pid, signal.SIGTERM)  # it holds the lock, so this is its process
    if not _ended():
        os.kill(there.pid, signal.SIGKILL)  # its JVM ends with it
        _ended()
        state.remove(there)
    return True


def _ended() -> bool:
    deadline = time.monotonic() + _STOP_SECONDS
    while state.is_alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _launch() -> None:
    """Start the process, and wait until it is ready, or has ended."""
    log = state.log_file()
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "millpond.engine.spark.warm.server"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # what ends this command does not end the engine
        )
    try:
        _watch(process, log)
    except KeyboardInterrupt:
        process.terminate()
        raise


def _watch(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not _is_ready(process.pid):
        code = process.poll()
        if code == ALREADY_THERE:  # another command was faster
            return
        if code is not None:
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise EngineUnavailableError(
                "the warm engine did not start: " + "\n  ".join(said[-_TAIL_LINES:]),
                engine="spark",
                hint=f"all that it said is in {log}",
            )
        if time.monotonic() > deadline:
            process.kill()
            raise _no_answer()
        time.sleep(_LOOK_SECONDS)


def _is_ready(pid: int) -> bool:
    there = state.read()
    return there is not None and there.pid == pid


def _wait() -> dict[str, Any]:
    """How the engine is, once it answers: it may be that another command starts it."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        found = status()
        if found is not None:
            return found
        time.sleep(_LOOK_SECONDS)
    raise _no_answer()


def _no_answer() -> EngineUnavailableError:
    return EngineUnavailableError(
        f"the warm engine does not answer within {_START_SECONDS} seconds",
        engine="spark",
        hint=f"see {state.log_file()}, and stop it: pond engine stop",
    )
