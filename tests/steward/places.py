"""Places of a commit at which tests do something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.steward.committing import steps

if TYPE_CHECKING:
    from collections.abc import Callable


def is_after_the_moment(place: str) -> bool:
    """Whether a transaction that gets here stands."""
    when, _, name = place.partition(":")
    names = (*steps.STEPS[4:], "publish_table")
    return name in names or (when, name) == ("after", "oplog")


class At:
    """Does something when a place is passed for the n-th time."""

    def __init__(self, place: str, time: int, what: Callable[[], None]) -> None:
        self.place, self.left, self.what = place, time, what

    def __call__(self, place: str) -> None:
        if place == self.place:
            self.left -= 1
            if self.left == 0:
                self.what()
