"""Where the time comes from, so that tests can set it: a `Clock` is passed, never assumed.

Times are UTC with microseconds. `SystemClock` is the real one, `ManualClock` stands still until
a test moves it.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol, runtime_checkable


@runtime_checkable
class Clock(Protocol):
    """Tells the time of day, and a time that never goes back."""

    def now(self) -> datetime:
        """The time of day in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; only differences mean something."""
        ...


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """The time of day in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; only differences mean something."""
        return time.monotonic()


class ManualClock:
    """A clock that stands still until it is moved; safe to share between threads.

    >>> clock = ManualClock(datetime(2024, 2, 29, tzinfo=UTC))
    >>> clock.advance(timedelta(hours=1))
    >>> clock.now().isoformat(), clock.monotonic()
    ('2024-02-29T01:00:00+00:00', 3600.0)
    """

    def __init__(self, start: datetime = datetime(2000, 1, 1, tzinfo=UTC)) -> None:
        self._now = _in_utc(start)
        self._elapsed = timedelta()
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The time that was set."""
        return self._now

    def monotonic(self) -> float:
        """The sum of all steps forward, in seconds."""
        return self._elapsed.total_seconds()

    def advance(self, step: timedelta) -> None:
        """Let time pass; it can't pass backwards."""
        if step < timedelta():
            raise ValueError(f"time can't advance by {step}; use set() to change the time of day")
        with self._lock:
            self._now += step
            self._elapsed += step

    def set(self, now: datetime) -> None:
        """Change the time of day, also backwards, as an operator can; `monotonic` stays."""
        with self._lock:
            self._now = _in_utc(now)


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone; add tzinfo=UTC")
    return moment.astimezone(UTC)
