"""The outcome of a reduction in pieces: windows of time, each named by what reaches into it.

Who computes something from buckets computes it again only for windows in which rows are new.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Final

from millpond.provider.rows import Asked, Piece, key_of
from millpond.provider.times import conditions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.node import Plan

BUCKETS: Final = 1024
"""So many are in a window; more where the first and last time are far apart."""
MOST: Final = 4096
"""There are no more windows than this."""


def windows(pieces: Sequence[Piece], salt: str, width: int) -> list[Piece] | None:
    """The windows that pieces of the source reach into; None if it is not known when they are.

    >>> source = [Piece("a", 0, 5_000), Piece("b", 5_001, 9_000)]
    >>> found = windows(source, "", 4)
    >>> [(piece.first, piece.last) for piece in found]
    [(0, 4095), (4096, 8191), (8192, 12287)]
    >>> later = windows([*source, Piece("c", 9_001, 9_500)], "", 4)
    >>> [piece.key == other.key for piece, other in zip(found, later)]
    [True, True, False]
    """
    ends = [(piece.first, piece.last) for piece in pieces]
    known = [(first, last) for first, last in ends if first is not None and last is not None]
    if not known or len(known) < len(ends):
        return None
    length = BUCKETS * width
    while (max(last for _, last in known) - min(first for first, _ in known)) // length > MOST:
        length *= 2
    inside: dict[int, list[str]] = {}
    for piece, (first, last) in zip(pieces, known, strict=True):
        for at in range(first // length, last // length + 1):
            inside.setdefault(at, []).append(piece.key)
    return [
        Piece(
            key_of("window", salt, width, length, at, *keys),
            at * length,
            (at + 1) * length - 1,
            length // width,
            8 * length // width,
        )
        for at, keys in sorted(inside.items())
    ]


def within(plan: Plan, time: str, chosen: Sequence[Piece]) -> Plan:
    """The rows of some windows, in which neighbours are one range."""
    ranges: list[Asked] = []
    for piece in sorted(chosen, key=lambda piece: piece.first or 0):
        last = ranges[-1] if ranges else None
        if last is not None and last.end is not None and last.end + 1 == piece.first:
            ranges[-1] = Asked(last.start, piece.last)
        else:
            ranges.append(Asked(piece.first, piece.last))
    return plan.filter(
        reduce(or_, (reduce(and_, conditions(plan.schema, time, each)) for each in ranges))
    )
