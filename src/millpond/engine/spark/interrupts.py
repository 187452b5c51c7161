"""Ctrl-C while this process waits for Spark: it stops the work, and breaks nothing.

A KeyboardInterrupt in the middle of a call to the JVM loses the connection, prints a stack, and
leaves the job running. So it is held back until the call has come to its end.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def held_interrupt(stop: Callable[[], object] | None = None) -> Iterator[None]:
    """Ctrl-C does what it does, but at the end of the block, and calls `stop` to bring that about.

    A second one does not wait. Signals are the main thread's, so in others nothing changes.
    """
    before = signal.getsignal(signal.SIGINT) if in_main_thread() else None
    if before is None:
        yield
        return
    held: list[tuple[int, Any]] = []

    def hold(number: int, frame: Any) -> None:
        if held:
            earlier(number, frame)
        else:
            held.append((number, frame))
            if stop is not None:
                stop()

    earlier: Any = before
    if callable(before):  # else it is ignored, or ends the process
        signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            try:
                earlier(*held[0])
            except KeyboardInterrupt:
                # What the stopped work raised is no news to who stopped it.
                raise KeyboardInterrupt from None


def in_main_thread() -> bool:
    """Whether this is the thread that gets Python's signals."""
    return threading.current_thread() is threading.main_thread()
