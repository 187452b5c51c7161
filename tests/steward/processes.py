"""Processes that tests start and kill, forked off a server that has imported everything."""

from __future__ import annotations

import multiprocessing
import os
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "millpond",
        "millpond.base.store.open_cloud",
        "millpond.engine.arrow.compile",
        "millpond.kernel.write.checkpoint",
        "millpond.steward.pond",
        "millpond.steward.tables.writing",
        "pandas",
        "tests.steward.crowd",
        "tests.steward.deeds",
    ]
)


def run(target: Callable[..., None], *args: Any) -> int | None:
    """Run a function in a process of its own; how that ended."""
    process = CONTEXT.Process(target=target, args=args, daemon=True)
    process.start()
    process.join()
    return process.exitcode


def die() -> None:
    """The end, with no chance to tidy up."""
    os.kill(os.getpid(), signal.SIGKILL)
