"""What was seen at one place of all lines of a JSON file."""

from __future__ import annotations

from typing import Final

from millpond.engine.arrow.guess.numbers import Numbers
from millpond.engine.arrow.guess.texts import times_guess

ITEM: Final = object()
"""The step from a list to its elements."""


class Unsure(Exception):  # noqa: N818 - it never leaves this package
    """A fraction may not be what was written: all are looked at as text."""


class Seen:
    """What was seen of the values at one place of all lines."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        """The first line of each kind of value."""
        self.numbers = Numbers()
        self.texts = times_guess()
        self.members: dict[str, Seen] = {}
        self.items: Seen | None = None
        self.is_unsure = False

    @property
    def largest(self) -> int:
        """The whole number that is furthest from zero, alone or in lists."""
        seen = self
        while seen.items is not None:
            seen = seen.items
        return seen.numbers.largest
