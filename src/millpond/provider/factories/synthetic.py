"""`synthetic-timeseries`: a made-up series, the same for the same configuration, for ever.

    factory: synthetic-timeseries
    config:
      start: 2024-01-01
      end: 2024-12-31T23:45
      interval: 15m
      points:
        - name: temperature
          components:
            - {type: sine, amplitude: 10, period: 365d, offset: 12}
            - {type: noise, amplitude: 0.5, seed: 7}

A point's value is the sum of its components. `end` belongs to the series.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from pydantic import Field, field_validator, model_validator

from millpond.fs.entry import to_micros
from millpond.plan import types as t
from millpond.provider.durations import Micros, Phase
from millpond.provider.factory import Config, Creates, RowsFactory
from millpond.provider.kept import scan_of
from millpond.provider.rows import ALL, Asked, Piece, key_of
from millpond.provider.times import in_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.reading import Reading
    from millpond.provider.rows import Rows

BATCH_ROWS: Final = 64 * 1024
MOST_ROWS: Final = 500_000_000


class Component(Config):
    """One part of a value. `period` and `phase` are lengths of time; a line rises per day."""

    type: Literal["sine", "triangle", "square", "line", "noise"]
    amplitude: float = 1.0
    period: Micros = 86_400_000_000
    phase: Phase = 0
    offset: float = 0.0
    slope: float = 0.0
    seed: int = 0


class Point(Config):
    """A column."""

    name: str = Field(min_length=1)
    components: list[Component] = Field(min_length=1)


class SyntheticConfig(Config):
    """From when to when, how often, and what."""

    start: datetime
    end: datetime
    interval: Micros
    points: list[Point] = Field(min_length=1)
    time_column: str = "timestamp"

    @field_validator("start", "end")
    @classmethod
    def _in_utc(cls, time: datetime) -> datetime:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)

    @model_validator(mode="after")
    def _fits(self) -> SyntheticConfig:
        if self.end < self.start:
            raise ValueError(f"it would end at {self.end}, before its start {self.start}")
        names = [self.time_column, *(point.name for point in self.points)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two columns are named {twice!r}")
        if self.rows > MOST_ROWS:
            raise ValueError(f"{self.rows:,} rows are too many: choose a longer interval")
        return self

    @property
    def rows(self) -> int:
        """The number of rows: one at the start, and one for each interval up to the end."""
        return (to_micros(self.end) - to_micros(self.start)) // self.interval + 1


class SyntheticRows:
    """The rows, made when they are first read."""

    def __init__(self, config: SyntheticConfig, reading: Reading) -> None:
        self.path = reading.path
        self._config = config
        self._kept = reading.kept.of("synthetic")
        self.time_column: str | None = config.time_column

    @cached_property
    def schema(self) -> Struct:
        """The time, and a double for each point."""
        points = {point.name: t.DOUBLE for point in self._config.points}
        return t.Struct.of(**{self._config.time_column: t.TIMESTAMP, **points})

    @cached_property
    def key(self) -> str:
        """The configuration is all there is."""
        return key_of("synthetic with end", self._config.model_dump_json())

    def pieces(self) -> Sequence[Piece]:
        """One."""
        config = self._config
        first = to_micros(config.start)
        last = first + (config.rows - 1) * config.interval
        return [Piece(self.key, first, last, config.rows, 8 * config.rows)]

    def plan(self, asked: Asked = ALL) -> Plan:
        """The rows that are wanted."""
        from millpond.plan.arrow import to_arrow_schema

        found = self._kept.find(self.key)
        if found is None:
            schema = to_arrow_schema(self.schema)
            found = self._kept.keep(self.key, schema, self._batches(schema))
        return in_range(scan_of([found], self.schema), self._config.time_column, asked)

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """All rows."""
        del pieces
        return self.plan()

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        import numpy as np
        import pyarrow as pa

        config = self._config
        for begin in range(0, config.rows, BATCH_ROWS):
            index = np.arange(begin, min(begin + BATCH_ROWS, config.rows), dtype=np.int64)
            passed = index * config.interval
            times = pa.array(passed + to_micros(config.start)).cast(schema.field(0).type)
            values = [pa.array(_point(point, index, passed)) for point in config.points]
            yield pa.RecordBatch.from_arrays([times, *values], schema=schema)


def _point(
    point: Point, index: npt.NDArray[np.int64], passed: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    import numpy as np

    total = np.zeros(len(index))
    for component in point.components:
        total += _component(component, index, passed)
    return total


def _component(
    part: Component, index: npt.NDArray[np.int64], passed: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    import numpy as np

    turn = ((passed + part.phase) % part.period) / part.period
    if part.type == "sine":
        shape = np.sin(2 * np.pi * turn)
    elif part.type == "triangle":
        shape = 1 - 4 * np.abs((turn + 0.25) % 1 - 0.5)
    elif part.type == "square":
        shape = np.where(turn < 0.5, 1.0, -1.0)
    elif part.type == "line":
        days: npt.NDArray[np.float64] = passed / 86_400_000_000
        return part.offset + part.slope * days
    else:
        shape = _noise(index, part.seed)
    found: npt.NDArray[np.float64] = part.offset + part.amplitude * shape
    return found


def _noise(index: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.float64]:
    """Numbers between -1 and 1 that look random, each from its index alone (SplitMix64)."""
    import numpy as np

    with np.errstate(over="ignore"):
        mixed = index.astype(np.uint64) + np.uint64(seed & (1 << 64) - 1) * np.uint64(0x9E37)
        mixed = (mixed + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) / (1 << 52) - 1


class SyntheticTimeseries(RowsFactory[SyntheticConfig]):
    """The factory."""

    name = "synthetic-timeseries"
    creates: ClassVar[Creates] = "series"
    model = SyntheticConfig
    summary = "a made-up series: sines, triangles, squares, lines, noise"

    def rows(self, config: SyntheticConfig, reading: Reading) -> Rows:
        """What the configuration describes."""
        return SyntheticRows(config, reading)
