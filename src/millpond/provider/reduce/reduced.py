"""`ReducedRows`: one resolution of a reduction, kept stretch by stretch."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from millpond.plan.unite import fitted
from millpond.provider.durations import parse_micros
from millpond.provider.rows import ALL, Asked, Piece, key_of
from millpond.provider.stretches import Stretches
from millpond.provider.times import in_range

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.reading import Reading
    from millpond.provider.reduce.reduction import Reduction
    from millpond.provider.rows import Rows


class ReducedRows:
    """The rows of one resolution."""

    def __init__(self, reduction: Reduction, resolution: str, reading: Reading) -> None:
        self.path = reading.path
        self._reduction = reduction
        self._width = parse_micros(resolution)
        self._reading = reading

    @property
    def time_column(self) -> str:
        """The start of buckets."""
        return self._reduction.time_column

    @property
    def schema(self) -> Struct:
        """The start of buckets, and a column for each aggregate."""
        return self._reduction.schema

    @cached_property
    def key(self) -> str:
        """The input, and what is made of it."""
        return key_of("reduced", self._reduction.source.key, self._reduction.made(self._width))

    @cached_property
    def _stretches(self) -> Stretches:
        """What comes of the partials of a stretch of time, for each of them by itself."""
        partials = self._reduction.partials(self._width)
        inputs: dict[str, Rows] = {"partials": partials}
        if self._reduction.rest:
            inputs["rows"] = self._reduction.timed
        return Stretches(
            self.path,
            inputs,
            self._reading,
            self._reading.kept.of("reduced"),
            self._reduction.made(self._width),
            self.time_column,
            self.schema,
            compute=self._from_partials,
            partials=None if self._reduction.rest else partials,
            has_neighbours=True,
            shortest=self._width,
        )

    def _from_partials(self, plans: Mapping[str, Plan]) -> Plan:
        rows = self._reduction.transformed(plans["rows"]) if self._reduction.rest else None
        return fitted(self._reduction.outcome(plans["partials"], rows, self._width), self.schema)

    def pieces(self) -> Sequence[Piece]:
        """Stretches of time."""
        return self._stretches.pieces()

    def plan(self, asked: Asked = ALL) -> Plan:
        """The buckets that are wanted; for some of them not all that is near is computed."""
        if asked.is_all or self._stretches.has(asked):
            return self._stretches.plan(asked)
        wide = self._widened(asked)
        plans = {"partials": self._reduction.partials(self._width).plan(wide)}
        if self._reduction.rest:
            plans["rows"] = self._reduction.timed.plan(wide)
        found = in_range(self._from_partials(plans), self.time_column, asked)
        return found.sort(self.time_column)

    def _widened(self, asked: Asked) -> Asked:
        """All rows of the buckets that are wanted."""
        start = None if asked.start is None else asked.start // self._width * self._width
        end = None if asked.end is None else (asked.end // self._width + 1) * self._width - 1
        return Asked(start, end)

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """The buckets of some stretches."""
        return self._stretches.plan_of(pieces)
