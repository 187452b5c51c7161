"""`timeseries-pivot`: one column for each value of a column, or for each of many inputs.

    factory: timeseries-pivot                     factory: timeseries-pivot
    config:                                       config:
      in_pattern: series:///readings                pattern: series:///sites/*
      pivot_column: sensor                          columns: [level]
      value_column: reading

The first form finds the values in the data: a row `(time, sensor, reading)` becomes a value in the
column that is named like the sensor. The second takes columns of many inputs: `weir.level`,
`mill.level`, named by what the last wildcard stands for. One row for each time; where there are
several values for one place, the newest version wins, then the last row in it.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import Field, model_validator

from millpond.base.errors import PathNotFoundError, SchemaError
from millpond.plan import aggregates as agg
from millpond.plan.expr import col, lit
from millpond.plan.types import STRING, Struct, is_orderable
from millpond.plan.unite import fitted
from millpond.provider.factories.timeseries_join import (
    Input,
    JoinedRows,
    TimeseriesJoinConfig,
    count_true,
    newest,
)
from millpond.provider.factory import Config, Creates, RowsFactory
from millpond.provider.patterns import PatternUrl
from millpond.provider.reduce.partials import cover
from millpond.provider.rows import ALL, Asked, Piece, key_of, shape_of
from millpond.provider.stretches import Stretches
from millpond.provider.timed import timed
from millpond.provider.times import time_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millpond.plan.node import Plan
    from millpond.provider.reading import Match, Reading
    from millpond.provider.reduce.partials import Node
    from millpond.provider.rows import Rows

NAME: Final = "timeseries-pivot"
MOST_VALUES: Final = 10_000
"""More columns than this are a mistake."""


class TimeseriesPivotConfig(Config):
    """One of the two forms."""

    in_pattern: PatternUrl | None = None
    pivot_column: str | None = None
    value_column: str | None = None
    pattern: PatternUrl | None = None
    columns: list[str] = Field(default_factory=list)
    time_column: str | None = None
    transforms: list[Any] = Field(default_factory=list)

    @model_validator(mode="after")
    def _is_one_form(self) -> TimeseriesPivotConfig:
        long = (self.in_pattern, self.pivot_column, self.value_column)
        is_long = all(long) and self.pattern is None and not self.columns
        is_wide = self.pattern is not None and bool(self.columns) and not any(long)
        if not (is_long or is_wide):
            raise ValueError(
                "give in_pattern, pivot_column and value_column, or pattern and columns"
            )
        return self


class PivotedRows:
    """The first form: values of a column become columns."""

    def __init__(self, config: TimeseriesPivotConfig, reading: Reading) -> None:
        self.path = reading.path
        self._config = config
        self._reading = reading
        self._pivot = str(config.pivot_column)
        self._value = str(config.value_column)

    @cached_property
    def _source(self) -> Rows:
        url = str(self._config.in_pattern)
        matches = self._reading.match(url)
        if not matches:
            raise _no_input(self.path, url)
        return self._reading.united(url, matches)

    def _transformed(self, plan: Plan) -> Plan:
        return self._reading.transformed(plan, self._config.transforms)

    @cached_property
    def _input(self) -> Struct:
        schema = self._transformed(shape_of(self._source)).schema
        for name in (self._pivot, self._value):
            schema.field(name)
        if not is_orderable(schema.field(self._value).type):
            type_ = schema.field(self._value).type
            raise SchemaError(f"{self.path}: {self._value!r} is a {type_} and can't be pivoted")
        return schema

    @cached_property
    def time_column(self) -> str:
        """The time."""
        return time_column(self._input, self._config.time_column, path=self._source.path)

    # The values

    @cached_property
    def values(self) -> list[str]:
        """The values of the pivot column, as text, in order."""
        found = {value for node in cover(self._source.pieces(), self._values_salt)
                 for value in self._values_of(node)}  # fmt: skip
        if len(found) > MOST_VALUES:
            raise SchemaError(
                f"{self.path}: {self._pivot!r} has {len(found):,} values, too many for columns",
                hint="choose another pivot_column",
            )
        return sorted(found)

    @cached_property
    def _values_salt(self) -> str:
        return key_of("values", self._pivot, self._reading.transforms_key(self._config.transforms))

    def _values_of(self, node: Node) -> list[str]:
        notes = self._reading.kept.of("values")
        known = notes.read_text(node.key)
        if known is not None:
            found: list[str] = json.loads(known)
            return found
        if any(notes.read_text(each.key) is not None for each in node.below):
            values = sorted({v for each in node.below for v in self._values_of(each)})
        else:
            rows = self._transformed(self._source.plan_of(node.pieces))
            plan = rows.select(col(self._pivot).cast(STRING).alias("value")).distinct("value")
            batches = self._reading.run(plan, ordered=False)
            values = sorted(v for b in batches for v in b.column(0).to_pylist() if v is not None)
        notes.write_text(node.key, json.dumps(values))
        return values

    # The rows

    def _pivoted(self, rows: Plan) -> Plan:
        named = col(self._pivot).cast(STRING)
        return self._by_time(
            rows, {v: newest(self._value, where=named == lit(v)) for v in self._columns}
        )

    def _quick(self, rows: Plan, check: str) -> Plan | None:
        """Return the rows where each value has one row at a time; `check` is true where one has
        more: then the largest is not always the newest.
        """
        if not self._columns:
            return None
        named = col(self._pivot).cast(STRING)
        measures = {v: agg.max(self._value, where=named == lit(v)) for v in self._columns}
        counted = agg.count(self._value, where=named.is_not_null())
        found = self._by_time(rows, {**measures, check: counted})
        values = count_true(col(v).is_not_null() for v in self._columns)
        checked = found.with_columns(**{check: col(check) > values})
        return fitted(checked, Struct((*self.schema.fields, checked.schema.field(check))))

    @property
    def _columns(self) -> list[str]:
        return [value for value in self.values if value != self.time_column]

    def _by_time(self, rows: Plan, measures: Mapping[str, agg.Measure]) -> Plan:
        time = self.time_column
        rows = self._transformed(rows).filter(col(time).is_not_null())
        return rows.aggregate(time, **measures)

    @cached_property
    def schema(self) -> Struct:
        """The time, and a column for each value."""
        if self.time_column in self.values:
            raise SchemaError(
                f"{self.path}: a value of {self._pivot!r} is named like the time, "
                f"{self.time_column!r}",
                hint="rename the time by a transform: column-rename",
            )
        return self._pivoted(shape_of(self._source)).schema

    @cached_property
    def _salt(self) -> str:
        """Without the values: what was kept before a new one came has nulls for it, and stays."""
        transforms = self._reading.transforms_key(self._config.transforms)
        type_ = self._input.field(self._value).type
        return key_of(
            "pivoted newest", self.time_column, self._pivot, self._value, type_, transforms
        )

    @cached_property
    def _stretches(self) -> Stretches:
        return Stretches(
            self.path,
            {"rows": timed(self._source, self.time_column, self._transformed)},
            self._reading,
            self._reading.kept.of("pivoted"),
            self._salt,
            self.time_column,
            self.schema,
            compute=lambda plans: fitted(self._pivoted(plans["rows"]), self.schema),
            quick=lambda plans, check: self._quick(plans["rows"], check),
        )

    @cached_property
    def key(self) -> str:
        """The input, and what is made of it."""
        return key_of(self._salt, self._source.key)

    def pieces(self) -> Sequence[Piece]:
        """Stretches of time."""
        return self._stretches.pieces()

    def plan(self, asked: Asked = ALL) -> Plan:
        """The rows that are wanted."""
        return self._stretches.plan(asked)

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """The rows of some stretches."""
        return self._stretches.plan_of(pieces)


def _wide(config: TimeseriesPivotConfig, reading: Reading) -> JoinedRows:
    """The second form is a join in which each path is a scope."""
    url = str(config.pattern)
    matches = reading.match(url)
    if not matches:
        raise _no_input(reading.path, url)
    scheme = url.partition("://")[0] + "://" if "://" in url else ""
    names = _names(matches, reading.path)
    inputs = [
        Input(
            pattern=f"{scheme}{match.path}",
            scope=names[match.path].replace("$", "$$"),
            columns=config.columns,
            transforms=config.transforms,
        )
        for match in matches
    ]
    return JoinedRows(TimeseriesJoinConfig(time_column=config.time_column, inputs=inputs), reading)


def _names(matches: Sequence[Match], path: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in matches:
        name = match.captures[-1] if match.captures else match.path.rpartition("/")[2]
        other = next((p for p, n in found.items() if n == name), None)
        if other is not None:
            raise SchemaError(
                f"{path}: {other} and {match.path} would both be named {name!r}",
                hint="choose a pattern whose last wildcard tells them apart",
            )
        found[match.path] = name
    return found


def _no_input(path: str, url: str) -> PathNotFoundError:
    return PathNotFoundError(
        f"nothing matches {url}, the input of {path}",
        path=path,
        hint="look what is there: pond list",
    )


class TimeseriesPivot(RowsFactory[TimeseriesPivotConfig]):
    """The factory."""

    name = NAME
    creates: ClassVar[Creates] = "series"
    model = TimeseriesPivotConfig
    summary = "one column for each value of a column, or for each of many inputs"

    def rows(self, config: TimeseriesPivotConfig, reading: Reading) -> Rows:
        """The rows of either form."""
        return _wide(config, reading) if config.pattern else PivotedRows(config, reading)
