"""`temporal-reduce`: series reduced to buckets of time, at several resolutions.

    factory: temporal-reduce
    config:
      in_pattern: series:///sensors/*
      out_pattern: $0
      resolutions: [1h, 6h, 1d]
      aggregations:
        - {type: avg, columns: ["temp*", level]}
        - {type: count, columns: [level]}

makes `weir/res=1h.series`, `weir/res=6h.series` and so on with the columns `level.avg`, ….
Buckets begin at the epoch in UTC and are named by their start. See `provider.reduce`.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import Field, field_validator

from millpond.base.errors import FactoryConfigError, SchemaError
from millpond.fs.entry import EntryType
from millpond.plan.unite import fitted
from millpond.provider.captures import filled
from millpond.provider.durations import parse_micros
from millpond.provider.factory import KINDS, Config, Creates, Entry, NodeFactory
from millpond.provider.folders import folders
from millpond.provider.reduce.holistic import HOLISTIC, holistic, is_holistic
from millpond.provider.reduce.measures import (
    MERGEABLE,
    Wanted,
    can_measure,
    finished,
    merged,
    partial,
)
from millpond.provider.reduce.partials import Partials
from millpond.provider.rows import ALL, Asked, Piece, key_of, shape_of
from millpond.provider.stretches import Stretches
from millpond.provider.timed import timed
from millpond.provider.times import in_range, time_column
from millpond.provider.wildcards import matching

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.reading import Reading
    from millpond.provider.rows import Rows

NAME: Final = "temporal-reduce"


class Aggregation(Config):
    """One kind of aggregate over some columns; wildcards match names of columns."""

    type: str
    columns: list[str] = Field(default_factory=lambda: ["*"])

    @field_validator("type")
    @classmethod
    def _is_known(cls, kind: str) -> str:
        if kind not in MERGEABLE and not is_holistic(kind):
            known = ", ".join((*MERGEABLE, *HOLISTIC, "p95"))
            raise ValueError(f"{kind!r} is no aggregate: there are {known} (any percentile)")
        return kind


class TemporalReduceConfig(Config):
    """What is reduced, and how."""

    in_pattern: str
    out_pattern: str
    time_column: str | None = None
    resolutions: list[str] = Field(min_length=1)
    aggregations: list[Aggregation] = Field(min_length=1)
    transforms: list[Any] = Field(default_factory=list)

    @field_validator("resolutions")
    @classmethod
    def _are_lengths(cls, resolutions: list[str]) -> list[str]:
        widths = [parse_micros(each) for each in resolutions]
        if len(set(widths)) < len(widths):
            raise ValueError("a resolution stands twice")
        return resolutions


class ReducedRows:
    """The rows of one resolution."""

    def __init__(
        self,
        source: Rows,
        config: TemporalReduceConfig,
        resolution: str,
        reading: Reading,
        shared: dict[str, Partials],
    ) -> None:
        self.path = reading.path
        self._source = source
        self._config = config
        self._width = parse_micros(resolution)
        self._reading = reading
        self._shared = shared

    @cached_property
    def _input(self) -> Struct:
        """The columns of rows before they are reduced."""
        return self._transformed(shape_of(self._source)).schema

    def _transformed(self, plan: Plan) -> Plan:
        return self._reading.transformed(plan, self._config.transforms)

    @cached_property
    def time_column(self) -> str:
        """The time of the input, which is the start of buckets here."""
        return time_column(self._input, self._config.time_column, path=self._source.path)

    @cached_property
    def _timed(self) -> Rows:
        """The input, whose pieces tell of the time that buckets are made of, or of none."""
        return timed(self._source, self.time_column, self._transformed)

    @cached_property
    def _wanted(self) -> tuple[Wanted, ...]:
        found: dict[Wanted, None] = {}
        for aggregation in self._config.aggregations:
            found |= dict.fromkeys(self._chosen(aggregation))
        if not found:
            raise SchemaError(
                f"{self._source.path} has no column that could be reduced",
                hint=f"its columns are {', '.join(self._input.names)}",
            )
        return tuple(found)

    def _chosen(self, aggregation: Aggregation) -> list[Wanted]:
        """What an aggregation means; a pattern leaves out what can't be aggregated like that."""
        kind, found = aggregation.type, []
        names = [name for name in self._input.names if name != self.time_column]
        for pattern in aggregation.columns:
            if pattern in names and not _fits(kind, pattern, self._input):
                raise SchemaError(
                    f"{self._source.path}: there is no {kind} of {pattern!r}, a "
                    f"{self._input.field(pattern).type}",
                    hint="choose other columns, or cast it by a transform",
                )
            chosen = [name for name in names if matching(pattern, name) is not None]
            if not chosen and not {"*", "?"} & set(pattern):
                raise SchemaError(
                    f"{self._source.path} has no column {pattern!r}", hint=self._input.near(pattern)
                )
            found += [Wanted(name, kind) for name in chosen if _fits(kind, name, self._input)]
        return found

    @cached_property
    def _mergeable(self) -> tuple[Wanted, ...]:
        return tuple(each for each in self._wanted if each.kind in MERGEABLE)

    @cached_property
    def _base(self) -> int:
        """The width of partials: the widest resolution that divides this one comes from it."""
        widths = sorted(parse_micros(each) for each in self._config.resolutions)
        return next(width for width in widths if self._width % width == 0)

    @cached_property
    def _salt(self) -> str:
        """Names what partials are: finer and coarser resolutions share them."""
        transforms = self._reading.transforms_key(self._config.transforms)
        said = [(each.column, each.kind) for each in sorted(self._mergeable)]
        return key_of("partial", self.time_column, self._base, said, self._input, transforms)

    @cached_property
    def schema(self) -> Struct:
        """The start of buckets, and a column for each aggregate."""
        return self._outcome(self._transformed(shape_of(self._source))).schema

    def _outcome(self, rows: Plan) -> Plan:
        """All that is asked for, from rows and nothing that was kept."""
        first = merged(self._reduced(rows), self._mergeable, width=self._width)
        return self._complete(finished(first, self._mergeable, time=self.time_column), rows)

    def _reduced(self, rows: Plan) -> Plan:
        return partial(rows, self._mergeable, time=self.time_column, width=self._base)

    @cached_property
    def _rest(self) -> list[Wanted]:
        """Aggregates that can't be merged, which look at all rows of a bucket."""
        return [each for each in self._wanted if each.kind not in MERGEABLE]

    def _complete(self, found: Plan, rows: Plan | None) -> Plan:
        """With all aggregates, in order."""
        if self._rest:
            assert rows is not None
            found = holistic(found, rows, self._rest, time=self.time_column, width=self._width)
        return found.select(self.time_column, *(each.name for each in self._wanted))

    @cached_property
    def key(self) -> str:
        """The input, and what is made of it."""
        return key_of("reduced", self._source.key, self._made, self._width)

    @cached_property
    def _made(self) -> str:
        """Names what is made of the input."""
        return key_of(self._salt, [(each.column, each.kind) for each in self._wanted])

    @cached_property
    def _stretches(self) -> Stretches:
        """What comes of the partials of a stretch of time, for each of them by itself."""
        inputs: dict[str, Rows] = {"partials": self._partials}
        if self._rest:
            inputs["rows"] = self._timed
        return Stretches(
            self.path,
            inputs,
            self._reading,
            self._reading.kept.of("reduced"),
            key_of(self._made, self._width),
            self.time_column,
            self.schema,
            compute=self._from_partials,
            partials=None if self._rest else self._partials,
            has_neighbours=True,
            shortest=self._width,
        )

    @cached_property
    def _partials(self) -> Partials:
        """Shared by all resolutions that are made of the same."""
        known = self._shared.get(self._salt)
        if known is None:
            known = self._shared[self._salt] = self._new_partials()
        return known

    def _new_partials(self) -> Partials:
        return Partials(
            self._timed,
            self._reading,
            self._reading.kept.of("partials"),
            self._salt,
            reduce=lambda rows: self._reduced(self._transformed(rows)),
            merge=lambda found: merged(found, self._mergeable),
            schema=self._reduced(self._transformed(shape_of(self._source))).schema,
            width=self._base,
        )

    def _from_partials(self, plans: Mapping[str, Plan]) -> Plan:
        found = merged(plans["partials"], self._mergeable, width=self._width)
        outcome = finished(found, self._mergeable, time=self.time_column)
        rows = self._transformed(plans["rows"]) if self._rest else None
        return fitted(self._complete(outcome, rows), self.schema)

    def pieces(self) -> Sequence[Piece]:
        """Stretches of time."""
        return self._stretches.pieces()

    def plan(self, asked: Asked = ALL) -> Plan:
        """The buckets that are wanted; for some of them not all that is near is computed."""
        if asked.is_all or self._stretches.has(asked):
            return self._stretches.plan(asked)
        wide = self._widened(asked)
        plans = {"partials": self._partials.plan(wide)}
        if self._rest:
            plans["rows"] = self._timed.plan(wide)
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


def _fits(kind: str, name: str, schema: Struct) -> bool:
    return can_measure("avg" if is_holistic(kind) else kind, name, schema)


class TemporalReduce(NodeFactory[TemporalReduceConfig]):
    """The factory."""

    creates: ClassVar[Creates] = "directory"
    model = TemporalReduceConfig
    summary = "series reduced to buckets of time, at several resolutions"

    def entry(self, name: str, config: Mapping[str, Any], reading: Reading) -> Entry:
        """A directory for each outcome, with a series for each resolution."""
        del name
        parsed = self.parse(config, reading.variables)
        said = json.dumps(config, sort_keys=True)
        return Entry(
            KINDS[self.creates], NAME, said, entries=lambda: _directory(parsed, said, reading)
        )


def _directory(config: TemporalReduceConfig, said: str, reading: Reading) -> Mapping[str, Entry]:
    groups: dict[str, list[Any]] = {}
    shared: dict[str, dict[str, Partials]] = {}
    for match in reading.match(config.in_pattern):
        groups.setdefault(filled(config.out_pattern, match.captures).strip("/"), []).append(match)
    leaves: dict[str, Entry] = {}
    for out, matches in groups.items():
        if not out:
            raise FactoryConfigError(
                f"{config.out_pattern!r} names nothing", place=("out_pattern",), hint="$0"
            )
        for resolution in config.resolutions:
            path = f"{out}/res={resolution}.series"
            here = reading.at(f"{reading.path}/{path}")
            leaves[path] = _leaf(config, said, path, matches, resolution, here,
                                 shared.setdefault(out, {}))  # fmt: skip
    return folders(leaves, factory=NAME, identity=said)


def _leaf(
    config: TemporalReduceConfig,
    said: str,
    path: str,
    matches: Sequence[Any],
    resolution: str,
    here: Reading,
    shared: dict[str, Partials],
) -> Entry:
    def rows() -> Rows:
        source = here.united(config.in_pattern, matches)
        return ReducedRows(source, config, resolution, here, shared)

    return Entry(EntryType.DYNAMIC_SERIES, NAME, f"{said} {path}", rows=rows)
