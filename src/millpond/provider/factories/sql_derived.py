"""`sql-derived-table` and `sql-derived-series`: the rows of a query over other paths.

    factory: sql-derived-series
    config:
      patterns:
        levels: series:///sensors/*
      query: SELECT timestamp, level * 100 AS "level.cm" FROM levels

Spark runs the query. Its columns are asked for once for each text and kept under `cache/`, and so
are its rows when all of them were read; until then a filter on them reaches the inputs.
"""

from __future__ import annotations

import json
import re
import uuid
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import Field, field_validator, model_validator

from millpond.base.errors import FactoryConfigError, PathNotFoundError, SchemaError, SqlError
from millpond.plan.sqltables import check_inputs
from millpond.plan.sqltext import check_sql, is_steady
from millpond.provider.factory import Config, Creates, RowsFactory
from millpond.provider.kept import scan_of
from millpond.provider.patterns import PatternUrl
from millpond.provider.rows import ALL, Asked, Piece, key_of, shape_of
from millpond.provider.schemas import sql_schema
from millpond.provider.times import in_range, time_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.kept import Kept
    from millpond.provider.reading import Reading
    from millpond.provider.rows import Rows

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SqlDerivedConfig(Config):
    """What such a node is computed from, and how."""

    patterns: dict[str, PatternUrl] = Field(min_length=1)
    """URLs by the names that the query has for them."""
    query: str
    transforms: list[Any] = Field(default_factory=list)
    """Done to each input, before the query."""
    post_transforms: list[Any] = Field(default_factory=list)
    """Done to what the query gives."""
    time_column: str | None = None

    @field_validator("patterns")
    @classmethod
    def _names(cls, patterns: dict[str, str]) -> dict[str, str]:
        for name in patterns:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} can't name a table: use letters, digits and _")
        return patterns

    @field_validator("query")
    @classmethod
    def _query(cls, query: str) -> str:
        try:
            check_sql(query)
        except SqlError as error:
            raise ValueError(error.message) from None
        return query

    @model_validator(mode="after")
    def _reads_its_inputs(self) -> SqlDerivedConfig:
        try:
            check_inputs(self.query, tuple(self.patterns))
        except SqlError as error:
            raise ValueError(f"{error.message}\n  {error.hint}") from None
        return self


class DerivedRows:
    """The rows of a query."""

    def __init__(self, config: SqlDerivedConfig, reading: Reading, *, is_series: bool) -> None:
        self.path = reading.path
        self._config = config
        self._reading = reading
        self._is_series = is_series

    @cached_property
    def _inputs(self) -> dict[str, Rows]:
        found: dict[str, Rows] = {}
        for name, url in self._config.patterns.items():
            matches = self._reading.match(url)
            if not matches:
                raise PathNotFoundError(
                    f"nothing matches {url}, the input {name} of {self.path}",
                    path=self.path,
                    hint="look what is there: pond list",
                )
            if len(matches) > 1 and not self._is_series:
                shown = ", ".join(match.path for match in matches[:3])
                raise FactoryConfigError(
                    f"{url}, the input {name} of {self.path}, matches {len(matches)} paths: "
                    f"{shown}{', …' if len(matches) > 3 else ''}",
                    place=("patterns", name),
                    hint="a table has one file for each input: sql-derived-series takes many",
                )
            found[name] = self._reading.united(url, matches)
        return found

    def _plans(self, asked: dict[str, Asked] | None = None) -> dict[str, Plan]:
        given = asked or {}
        return {
            name: self._reading.transformed(
                rows.plan(given.get(name, ALL)), self._config.transforms
            )
            for name, rows in self._inputs.items()
        }

    @cached_property
    def _raw_schema(self) -> Struct:
        shapes = {name: shape_of(rows) for name, rows in self._inputs.items()}
        schemas = {
            name: self._reading.transformed(shape, self._config.transforms).schema
            for name, shape in shapes.items()
        }
        return sql_schema(self._config.query, schemas, self._reading.kept)

    @cached_property
    def schema(self) -> Struct:
        """The columns of the query, after transforms."""
        from millpond.plan.sources import Stored

        shape = Stored(self.path, self._raw_schema)
        return self._reading.transformed(shape, self._config.post_transforms).schema

    @cached_property
    def time_column(self) -> str | None:
        """The column that is declared, or has a usual name."""
        if not self._is_series:
            return None
        return time_column(self.schema, self._config.time_column, path=self.path)

    @cached_property
    def key(self) -> str:
        """The text, and what the inputs are."""
        config = self._config
        return key_of(
            "sql-derived",
            "" if is_steady(config.query) else uuid.uuid4(),  # what is kept of it is of no use
            config.query,
            json.dumps([*self._inputs]),
            *(rows.key for rows in self._inputs.values()),
            self._reading.transforms_key(config.transforms),
            self._reading.transforms_key(config.post_transforms),
        )

    def pieces(self) -> Sequence[Piece]:
        """One: nobody knows which rows of a query come from which rows of its inputs."""
        return [Piece(self.key)]

    @property
    def _kept(self) -> Kept:
        return self._reading.kept.of("queried")

    def keeping(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        """All rows, as they are read by somebody: they need not be computed again."""
        from millpond.plan.arrow import to_arrow_schema

        if not is_steady(self._config.query) or self._kept.find(self.key) is not None:
            return batches
        return self._kept.teed(self.key, to_arrow_schema(self.schema), batches)

    def plan(self, asked: Asked = ALL) -> Plan:
        """The query; a range of time is a filter on it, which Spark pushes down to the inputs.

        If all rows were read before, they are kept.
        """
        known = self._kept.find(self.key)
        if known is not None:
            rows = scan_of([known], self.schema)
            return rows if self.time_column is None else in_range(rows, self.time_column, asked)
        if asked.is_all:
            return self._whole()
        if self.time_column is None:
            raise SchemaError(f"{self.path} is a table and has no time")
        return in_range(self._whole(self._pushed(asked)), self.time_column, asked)

    def _pushed(self, asked: Asked) -> dict[str, Asked]:
        """Which rows of the inputs matter, so that versions and files are left out early."""
        from millpond.plan.run import engine_named

        config, column = self._config, self.time_column
        if column not in self._raw_schema or config.transforms or config.post_transforms:
            return {}
        times = {n: r.time_column for n, r in self._inputs.items() if r.time_column is not None}
        schemas = {name: rows.schema for name, rows in self._inputs.items()}
        spark: Any = engine_named("spark")
        found = spark.pushed_ranges(config.query, schemas, times, (column, asked.start, asked.end))
        return {name: Asked(*ends) for name, ends in found.items()}

    def plan_of(self, pieces: Sequence[Piece]) -> Plan:
        """All rows."""
        del pieces
        return self.plan()

    def _whole(self, asked: dict[str, Asked] | None = None) -> Plan:
        from millpond.plan.streams import Sql

        plans = self._plans(asked)
        made = Sql(self._config.query, tuple(plans), tuple(plans.values()), self._raw_schema)
        return self._reading.transformed(made, self._config.post_transforms)


class _SqlDerived(RowsFactory[SqlDerivedConfig]):
    model = SqlDerivedConfig

    def rows(self, config: SqlDerivedConfig, reading: Reading) -> Rows:
        """What the query gives."""
        return DerivedRows(config, reading, is_series=self.creates == "series")


class SqlDerivedTable(_SqlDerived):
    """One file for each input."""

    name = "sql-derived-table"
    creates: ClassVar[Creates] = "table"
    summary = "a table computed by a query over other paths"


class SqlDerivedSeries(_SqlDerived):
    """Any number of files for each input, united by the names of columns; all versions."""

    name = "sql-derived-series"
    creates: ClassVar[Creates] = "series"
    summary = "a series computed by a query over other paths, many files each"
