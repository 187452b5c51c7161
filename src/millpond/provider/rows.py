"""`Rows`: what factories take and give. Rows of a path, as a plan, and in pieces that can be kept.

A piece is a part of the rows whose key names its content for ever: a data file of a series, a
stretch of time of a join. What was computed from a piece is found again by its key, so after an
append only what is new is computed. See `kept.py`, and `design/0010`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from blake3 import blake3

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct


@dataclass(frozen=True, slots=True)
class Asked:
    """Which rows are wanted, by their time in microseconds; both ends belong to it."""

    start: int | None = None
    end: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether every row is wanted."""
        return self.start is None and self.end is None

    def overlaps(self, first: int | None, last: int | None) -> bool:
        """Whether rows between two times may be wanted; None is not known.

        >>> Asked(5, 9).overlaps(1, 5), Asked(5, 9).overlaps(10, None), Asked(5, 9).overlaps(0, 4)
        (True, False, False)
        """
        is_before = last is not None and self.start is not None and last < self.start
        is_after = first is not None and self.end is not None and first > self.end
        return not (is_before or is_after)

    def covers(self, first: int | None, last: int | None) -> bool:
        """Whether all rows between two times are wanted.

        >>> Asked(5, 9).covers(5, 9), Asked(5, 9).covers(4, 6), Asked(5).covers(7, None)
        (True, False, True)
        """
        starts = self.start is None or (first is not None and first >= self.start)
        return starts and (self.end is None or (last is not None and last <= self.end))


ALL: Final = Asked()


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of some rows."""

    key: str
    """Names the content: other rows, another key."""
    first: int | None = None
    """The first and last time in it, in microseconds; None where they are not known."""
    last: int | None = None
    rows: int | None = None
    size: int = 0
    """Bytes to be read for it, about."""


class Rows(Protocol):
    """The rows of one path, stored or computed."""

    @property
    def path(self) -> str:
        """Where they are."""
        ...

    @property
    def schema(self) -> Struct:
        """Their columns; nothing is run for it where that is possible."""
        ...

    @property
    def time_column(self) -> str | None:
        """Which column is the time, if they are a series."""
        ...

    @property
    def key(self) -> str:
        """Names the content: it changes whenever the rows may have changed."""
        ...

    def pieces(self) -> Sequence[Piece]:
        """All rows, cut into pieces; each row is in one of them."""
        ...

    def plan(self, asked: Asked = ALL) -> Plan:
        """The rows that are wanted."""
        ...

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """The rows of some of the pieces."""
        ...


def shape_of(rows: Rows) -> Plan:
    """A plan with the columns of some rows, to be looked at and not to be run."""
    from millpond.plan.sources import Stored

    return Stored(rows.path, rows.schema)


def key_of(*parts: object) -> str:
    """One name for many parts, in order.

    >>> key_of("a", "bc") != key_of("ab", "c")
    True
    """
    digest = blake3()
    for part in parts:
        text = str(part).encode()
        digest.update(len(text).to_bytes(8, "little"))
        digest.update(text)
    return digest.hexdigest(length=20)
