"""Who attends to this process: a command, which wants to know what an engine is at meanwhile.

A library has none. Where there is one, engines tell it what is worth knowing, report progress if it
wants that, and may hand plans to an engine that runs already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Progress(Protocol):
    """How far a run is."""

    @property
    def stages_done(self) -> int:
        """Steps that are over."""

    @property
    def stages_total(self) -> int | None:
        """Steps that are known."""

    @property
    def tasks_done(self) -> int:
        """Parts of steps that are over."""

    @property
    def tasks_total(self) -> int:
        """Parts of the steps that have begun."""

    @property
    def fraction(self) -> float | None:
        """The same, from 0 to 1; None before the first part is known."""

    @property
    def done(self) -> bool:
        """Whether it is over."""


class Attendant(Protocol):
    """Whom engines tell."""

    @property
    def on_progress(self) -> Callable[[Progress], object] | None:
        """Called now and then while a run goes on; None where nobody looks."""

    def tell(self, message: str, *, hint: str | None = None) -> None:
        """A message; with a hint it is about something that should be otherwise."""


_attending: list[Attendant] = []


def attend(attendant: Attendant | None) -> None:
    """Attend to this process from now on; None ends that."""
    _attending[:] = [] if attendant is None else [attendant]


def attendant() -> Attendant | None:
    """Who attends to this process, if anyone does."""
    return _attending[0] if _attending else None
