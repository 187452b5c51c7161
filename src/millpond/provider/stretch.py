"""`Stretch` and `Bundle`: time is cut into parts of equal length; pieces reach into some."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from millpond.provider.rows import Asked, Piece

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STRETCH_ROWS: Final = 4_000
"""About so many rows of all inputs are in a stretch, or more."""
BUNDLE: Final = 64
"""So many neighbours are kept as one, as soon as there are rows of a later time."""
SHORTEST: Final = 60_000_000
"""A minute."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some time, and the pieces of each input that reach into it."""

    key: str
    start: int | None
    """The first microsecond; None where time is not cut."""
    end: int | None
    """The first one after it."""
    pieces: Mapping[str, tuple[Piece, ...]] = field(compare=False)
    rows: float = 0.0
    bundle: int | None = None
    """Which one it belongs to."""

    @property
    def asked(self) -> Asked:
        """Its rows."""
        return Asked(self.start, None if self.end is None else self.end - 1)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Stretches that are kept as one."""

    key: str
    stretches: tuple[Stretch, ...]
    number: int
    """Which one of all it is: between neighbours there may be time, but there are no rows."""
    is_wide: bool = False
    """Whether it is as long as `BUNDLE` stretches, even if there are rows in one of them alone."""

    @property
    def start(self) -> int | None:
        """The first microsecond."""
        first = self.stretches[0]
        if not self.is_wide or first.start is None or first.bundle is None:
            return first.start
        return first.bundle * BUNDLE * self.width

    @property
    def width(self) -> int:
        """How long each stretch is."""
        first = self.stretches[0]
        return 0 if first.start is None or first.end is None else first.end - first.start

    @property
    def asked(self) -> Asked:
        """Its rows."""
        return Asked(self.stretches[0].start, self.stretches[-1].asked.end)

    @property
    def rows(self) -> float:
        """About how many rows of all inputs are in it."""
        return sum(each.rows for each in self.stretches)


def width_of(pieces: Sequence[Piece], shortest: int) -> int | None:
    """How long stretches are: the shortest doubled until about the right number is in one.

    It depends on how dense rows are and not on how many, so that it stays when more are appended.
    """
    firsts = [piece.first for piece in pieces if piece.first is not None]
    lasts = [piece.last for piece in pieces if piece.last is not None]
    counts = [piece.rows for piece in pieces if piece.rows is not None]
    if not pieces or not len(firsts) == len(lasts) == len(counts) == len(pieces):
        return None
    span = max(max(lasts) - min(firsts), shortest)
    width = shortest
    while width * sum(counts) / span < STRETCH_ROWS and width <= span:
        width *= 2
    return width


def share(piece: Piece, start: int, end: int) -> float:
    """How many rows of a piece are in a stretch, if they are spread evenly."""
    assert piece.first is not None
    assert piece.last is not None
    length = piece.last - piece.first + 1
    inside = min(piece.last + 1, end) - max(piece.first, start)
    return (piece.rows or 0) * inside / length
