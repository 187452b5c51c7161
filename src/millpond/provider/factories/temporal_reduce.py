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
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import Field, field_validator

from millpond.fs.entry import EntryType
from millpond.provider.durations import Length, parse_micros
from millpond.provider.factory import KINDS, Config, Creates, Entry, NodeFactory
from millpond.provider.folders import folders
from millpond.provider.outpaths import OutPattern, out_path
from millpond.provider.patterns import PatternUrl
from millpond.provider.reduce.holistic import HOLISTIC, is_holistic
from millpond.provider.reduce.measures import MERGEABLE
from millpond.provider.reduce.reduced import ReducedRows
from millpond.provider.reduce.reduction import Reduction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.provider.reading import Match, Reading

NAME: Final = "temporal-reduce"


class Aggregation(Config):
    """One kind of aggregate over some columns; wildcards match names of columns.

    Without columns it is all that can be aggregated like that. The time is one of them for `count`,
    which counts the rows of a bucket by it.
    """

    type: str
    columns: list[str] | None = None

    @field_validator("type")
    @classmethod
    def _is_known(cls, kind: str) -> str:
        if kind not in MERGEABLE and not is_holistic(kind):
            known = ", ".join((*MERGEABLE, *HOLISTIC, "p95"))
            raise ValueError(f"{kind!r} is no aggregate: there are {known} (any percentile)")
        return kind


class TemporalReduceConfig(Config):
    """What is reduced, and how."""

    in_pattern: PatternUrl
    out_pattern: OutPattern
    time_column: str | None = None
    resolutions: list[Length] = Field(min_length=1)
    aggregations: list[Aggregation] = Field(min_length=1)
    transforms: list[Any] = Field(default_factory=list)

    @field_validator("resolutions")
    @classmethod
    def _are_lengths(cls, resolutions: list[str]) -> list[str]:
        widths = [parse_micros(each) for each in resolutions]
        if len(set(widths)) < len(widths):
            raise ValueError("a resolution stands twice")
        return resolutions


class TemporalReduce(NodeFactory[TemporalReduceConfig]):
    """The factory."""

    name = NAME
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
    groups: dict[str, list[Match]] = {}
    for match in reading.match(config.in_pattern):
        groups.setdefault(out_path(config.out_pattern, match), []).append(match)
    leaves: dict[str, Entry] = {}
    for out, matches in groups.items():
        reduction = Reduction(config, matches, reading.at(f"{reading.path}/{out}"))
        for resolution in config.resolutions:
            path = f"{out}/res={resolution}.series"
            here = reading.at(f"{reading.path}/{path}")
            rows = partial(ReducedRows, reduction, resolution, here)
            leaves[path] = Entry(EntryType.DYNAMIC_SERIES, NAME, f"{said} {path}", rows=rows)
    return folders(leaves, factory=NAME, identity=said)
