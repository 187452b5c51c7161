"""Whether pieces tell of the time that a factory goes by, which transforms may have made anew.

A piece of a series knows the first and last time of the series' own column. That says something
about another column only if it is the same one, perhaps under another name.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from millpond.plan.lineage import source_column
from millpond.provider.rows import ALL, Asked, shape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.rows import Piece, Rows


def timed(rows: Rows, time: str, transform: Callable[[Plan], Plan]) -> Rows:
    """The rows, if their own time is `time` after a transform; else without any."""
    shape = shape_of(rows)
    own = source_column(transform(shape), time, shape)
    return rows if own is not None and own == rows.time_column else Untimed(rows)


class Untimed:
    """Rows of which nobody knows when they are."""

    time_column = None

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.path = rows.path

    @property
    def schema(self) -> Struct:
        """The columns."""
        return self._rows.schema

    @property
    def key(self) -> str:
        """Names the content."""
        return self._rows.key

    @cached_property
    def _known(self) -> dict[Piece, Piece]:
        return {replace(each, first=None, last=None): each for each in self._rows.pieces()}

    def pieces(self) -> Sequence[Piece]:
        """The same, without times."""
        return list(self._known)

    def plan(self, asked: Asked = ALL) -> Plan:
        """All rows, whatever is asked for."""
        del asked
        return self._rows.plan()

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """The rows of some pieces."""
        return self._rows.plan_of([self._known[each] for each in pieces])
