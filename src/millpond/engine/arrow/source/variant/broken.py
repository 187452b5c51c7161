"""Pieces of a variant that contradict each other, or are no variant at all."""

from __future__ import annotations


class BrokenVariant(Exception):  # noqa: N818 - caught where the file's name is known
    """A variant that can't be put together; `place` is where in it, as a JSON path."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place} {reason}")
        self.place = place
        self.reason = reason
