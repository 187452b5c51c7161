"""Cases in child processes: a crash, a hang or a huge allocation is an outcome of one case.

A child runs many cases and reports each. When it dies or hangs, the case it was at gets that
outcome, and the next child goes on after it. Children are forked from a server that has imported
everything and run nothing, so that no cache of one case is seen by another child.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import MillpondError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

CONTEXT: Final = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "duckdb",
        "jinja2",
        "millpond",
        "millpond.base.store.open_cloud",
        "millpond.cli.main",
        "millpond.engine.arrow.compile",
        "millpond.kernel.write.checkpoint",
        "millpond.steward.pond",
        "millpond.steward.rows.selection",
        "millpond.steward.tables.writing",
        "pyarrow.csv",
        "pyarrow.dataset",
        "pyarrow.ipc",
        "pyarrow.json",
        "pyarrow.parquet",
        "tests.fuzz.campaign_damage",
        "tests.fuzz.campaign_kills",
        "tests.fuzz.doors",
    ]
)

MEMORY: Final = 768 << 20
"""Bytes by which the memory of a child may grow during a case; inputs are below 4 MB."""
ADDRESS_SPACE: Final = 12 << 30
"""A hard limit for children, so that a case without bounds does not take the machine down."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one case: a class, and what helps to find the cause of a failure."""

    kind: str
    detail: str = ""


def run_cases(
    job: Callable[[Any], Outcome],
    cases: Sequence[Any],
    *,
    timeout: float = 60,
    limited: bool = True,
    batch: int = 400,
) -> Iterator[tuple[Any, Outcome]]:
    """Run a job on each case in children, and yield the outcomes in order.

    `limited` children have bounds on their memory; a JVM needs more address space than that.
    `batch` is the number of cases after which a new child is started.
    """
    at = 0
    while at < len(cases):
        for outcome in _one_child(job, cases[at : at + batch], timeout, limited=limited):
            yield cases[at], outcome
            at += 1


def _one_child(
    job: Callable[[Any], Outcome], cases: Sequence[Any], timeout: float, *, limited: bool
) -> Iterator[Outcome]:
    """Outcomes of the first cases: all of them, or as far as one child gets."""
    here, there = CONTEXT.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        child = CONTEXT.Process(target=_serve, args=(job, cases, there, home, limited))
        child.start()
        there.close()
        try:
            for _ in cases:
                if not here.poll(timeout):
                    yield Outcome("timeout", f"no result after {timeout:g} s")
                    return
                try:
                    yield here.recv()
                except EOFError:
                    child.join()
                    yield Outcome("crash", f"{_ended(child.exitcode)}: {_messages(home)}")
                    return
        finally:
            here.close()
            if child.is_alive() and child.pid is not None:
                child.join(0 if limited else 10)  # a session of Spark is stopped first
                if child.is_alive():
                    os.kill(child.pid, signal.SIGKILL)
            child.join()


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"


def _messages(home: str) -> str:
    """What a child wrote, without the list of native modules that ends each report of a crash."""
    text = (Path(home) / "messages").read_text(errors="replace")
    return text.partition("Extension modules:")[0][:600].strip()


def _serve(
    job: Callable[[Any], Outcome], cases: Sequence[Any], there: Connection, home: str, limited: bool
) -> None:
    """Run cases in this child and report each; all its files are in its home."""
    settle(home)
    messages = (Path(home) / "messages").open("w")
    os.dup2(messages.fileno(), 1)
    os.dup2(messages.fileno(), 2)
    sys.stdout = sys.stderr = messages
    faulthandler.enable(messages)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limited:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    for case in cases:
        before = _peak()
        outcome = guarded(job, case)
        if limited and _peak() - before > MEMORY:
            outcome = Outcome("memory", f"{(_peak() - before) >> 20} MiB more; {outcome.kind}")
        there.send(outcome)
    there.close()


def settle(home: str) -> None:
    """Let this process keep temporary files, caches and state in a directory."""
    tempfile.tempdir = home
    for name in ("TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        os.environ[name] = home


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def guarded(job: Callable[[Any], Outcome], case: Any) -> Outcome:
    """Run one case; an error that is not one of Millpond's is a traceback for a user."""
    try:
        return job(case)
    except MillpondError as error:
        return refusal(error)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the outcome
        return Outcome("traceback", traceback_of(error))


def refusal(error: MillpondError) -> Outcome:
    """An error of Millpond's: it has a message and a hint."""
    if not error.message.strip() or not (error.hint or "").strip():
        return Outcome("no hint", f"{type(error).__name__}: {error}")
    return Outcome("refused", f"{type(error).__name__}: {error}")


def traceback_of(error: BaseException) -> str:
    """The error and where in Millpond it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/millpond/" in frame.filename] or list(frames)
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in ours[-3:]]
    return f"{type(error).__name__}: {str(error)[:300]} ({' > '.join(places)})"
