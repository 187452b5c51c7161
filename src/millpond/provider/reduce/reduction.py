"""`Reduction`: what all resolutions of one outcome have in common: the input, what is asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from millpond.base.errors import SchemaError
from millpond.provider.durations import parse_micros
from millpond.provider.reduce.holistic import holistic, is_holistic
from millpond.provider.reduce.measures import (
    MERGEABLE,
    Wanted,
    can_measure,
    finished,
    merged,
    partial,
)
from millpond.provider.reduce.partials import Partials
from millpond.provider.rows import key_of, shape_of
from millpond.provider.timed import timed
from millpond.provider.times import time_column
from millpond.provider.wildcards import matching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.factories.temporal_reduce import Aggregation, TemporalReduceConfig
    from millpond.provider.reading import Match, Reading
    from millpond.provider.rows import Rows


class Reduction:
    """Some matches that are reduced together. Nothing is looked at before it is asked for."""

    def __init__(
        self, config: TemporalReduceConfig, matches: Sequence[Match], reading: Reading
    ) -> None:
        self._config = config
        self._matches = matches
        self.reading = reading
        self._partials: dict[int, Partials] = {}

    @cached_property
    def source(self) -> Rows:
        """The rows, as they are stored or computed."""
        return self.reading.united(self._config.in_pattern, self._matches)

    @cached_property
    def _shape(self) -> Plan:
        return self.transformed(shape_of(self.source))

    @property
    def _input(self) -> Struct:
        """The columns of rows before they are reduced."""
        return self._shape.schema

    def transformed(self, plan: Plan) -> Plan:
        """Rows after the transforms."""
        return self.reading.transformed(plan, self._config.transforms)

    @cached_property
    def time_column(self) -> str:
        """The time of the input, which is the start of buckets in the outcome."""
        return time_column(self._input, self._config.time_column, path=self.source.path)

    @cached_property
    def timed(self) -> Rows:
        """The input, whose pieces tell of the time that buckets are made of, or of none."""
        return timed(self.source, self.time_column, self.transformed)

    # What is asked for

    @cached_property
    def wanted(self) -> tuple[Wanted, ...]:
        """The aggregates, in order."""
        found: dict[Wanted, None] = {}
        for aggregation in self._config.aggregations:
            found |= dict.fromkeys(self._chosen(aggregation))
        if not found:
            raise SchemaError(
                f"{self.source.path} has no column that could be reduced",
                hint=f"its columns are {', '.join(self._input.names)}",
            )
        return tuple(found)

    def _chosen(self, aggregation: Aggregation) -> list[Wanted]:
        """Return what an aggregation means.

        A pattern leaves out what can't be aggregated like that, and the time.
        """
        kind, found = aggregation.type, []
        names = [name for name in self._input.names if name != self.time_column]
        wanted = aggregation.columns
        if wanted is None:
            wanted = ["*"] if names or kind != "count" else []
            wanted += [self.time_column] if kind == "count" else []
        for pattern in wanted:
            if pattern in self._input.names and not _fits(kind, pattern, self._input):
                raise SchemaError(
                    f"{self.source.path}: there is no {kind} of {pattern!r}, a "
                    f"{self._input.field(pattern).type}",
                    hint="choose other columns, or cast it by a transform",
                )
            chosen = [name for name in names if matching(pattern, name) is not None]
            if pattern == self.time_column:
                chosen = [pattern]
            if not chosen:
                is_pattern = bool({"*", "?"} & set(pattern))
                raise SchemaError(
                    f"{self.source.path} has no column {pattern!r}, of which {kind} is asked for",
                    hint=f"its columns are {', '.join(names) or 'none'}"
                    if is_pattern
                    else self._input.near(pattern),
                )
            found += [Wanted(name, kind) for name in chosen if _fits(kind, name, self._input)]
        return found

    @cached_property
    def _mergeable(self) -> tuple[Wanted, ...]:
        return tuple(each for each in self.wanted if each.kind in MERGEABLE)

    @cached_property
    def rest(self) -> list[Wanted]:
        """Aggregates that can't be merged, which look at all rows of a bucket."""
        return [each for each in self.wanted if each.kind not in MERGEABLE]

    @cached_property
    def schema(self) -> Struct:
        """The start of buckets, and a column for each aggregate; of whatever width they are."""
        width = self.base_of(max(self._widths))
        return self.outcome(self._reduced(self._shape, width), self._shape, width).schema

    # How it is computed

    @cached_property
    def _widths(self) -> list[int]:
        return sorted(parse_micros(each) for each in self._config.resolutions)

    def base_of(self, width: int) -> int:
        """The width of partials for a resolution: the finest one that divides it."""
        return next(each for each in self._widths if width % each == 0)

    def _salt(self, base: int) -> str:
        """Names what partials are: finer and coarser resolutions share them."""
        transforms = self.reading.transforms_key(self._config.transforms)
        said = [(each.column, each.kind) for each in sorted(self._mergeable)]
        return key_of("partial newest", self.time_column, base, said, self._input, transforms)

    def made(self, width: int) -> str:
        """Names what a resolution makes of the input."""
        said = [(each.column, each.kind) for each in self.wanted]
        return key_of(key_of(self._salt(self.base_of(width)), said), width)

    def _reduced(self, rows: Plan, base: int) -> Plan:
        return partial(rows, self._mergeable, time=self.time_column, width=base)

    def partials(self, width: int) -> Partials:
        """Those that a resolution is made of."""
        base = self.base_of(width)
        known = self._partials.get(base)
        if known is None:
            known = self._partials[base] = self._new_partials(base)
        return known

    def _new_partials(self, base: int) -> Partials:
        return Partials(
            self.timed,
            self.reading,
            self.reading.kept.of("partials"),
            self._salt(base),
            reduce=lambda rows: self._reduced(self.transformed(rows), base),
            merge=lambda found: merged(found, self._mergeable),
            schema=self._reduced(self._shape, base).schema,
            width=base,
        )

    def outcome(self, partials: Plan, rows: Plan | None, width: int) -> Plan:
        """All that is asked for, from partials, and from rows where those do not tell all."""
        first = merged(partials, self._mergeable, width=width)
        found = finished(first, self._mergeable, time=self.time_column)
        if self.rest:
            assert rows is not None
            found = holistic(found, rows, self.rest, time=self.time_column, width=width)
        return found.select(self.time_column, *(each.name for each in self.wanted))


def _fits(kind: str, name: str, schema: Struct) -> bool:
    return can_measure("avg" if is_holistic(kind) else kind, name, schema)
