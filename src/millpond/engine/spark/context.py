"""What the compilers of nodes share while one plan becomes one DataFrame."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millpond.engine.spark.api import Api
from millpond.engine.spark.expressions import Expressions
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import Column, SparkSession

    from millpond.engine.spark.parts import Cut
    from millpond.engine.spark.verify import Verify
    from millpond.plan.bound import BoundSortKey
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct


@dataclass(slots=True)
class Context:
    """One compilation: the session's API, names that no column has, and what to release."""

    api: Api
    prefix: str
    run: Callable[[Plan, bool], Iterator[pa.RecordBatch]]
    """Runs a part of the plan now, in order if asked: for nodes whose files other rows name."""
    resources: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    reads: bool = True
    """Whether listings and the names of a dynamic scan's files may be asked for now."""
    files: int = 0
    required: list[tuple[list[str], Struct]] = field(default_factory=list)
    """Columns that are never null, and the files that have to hold them."""
    verify: Verify = "pages"
    """What is checked of Parquet files."""
    cut: Cut | None = None
    """Where rows are grouped by the part of time that they are in: see `parts.py`."""
    _hidden: int = 0
    _columns: dict[str, Column] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        plan: Plan,
        session: SparkSession,
        run: Callable[[Plan, bool], Iterator[pa.RecordBatch]],
        verify: Verify = "pages",
    ) -> Context:
        """For this plan."""
        return cls(Api.of(session), free_prefix(plan), run, verify=verify)

    @property
    def session(self) -> SparkSession:
        """The session."""
        return self.api.session

    @property
    def functions(self) -> Any:
        """PySpark's functions for this session."""
        return self.api.functions

    def column(self, name: str) -> Column:
        """A column by name; the JVM is asked for it once."""
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = self.api.column(name)
        return found

    def columns(self, names: Iterable[str]) -> list[Column]:
        """Columns by name."""
        return [self.column(name) for name in names]

    def over(self, schema: Struct) -> Expressions:
        """Compiles expressions over rows of this schema."""
        return Expressions(self.api, schema, self.column)

    def hidden(self) -> str:
        """A new name for a column that no node knows of."""
        self._hidden += 1
        return f"{self.prefix}{self._hidden}"

    def ascending(self, names: Iterable[str]) -> list[Column]:
        """Hidden keys as sort orders."""
        return [self.column(name).asc_nulls_last() for name in names]

    def sort_orders(self, keys: Iterable[BoundSortKey], schema: Struct) -> list[Column]:
        """A node's sort keys as sort orders."""
        over = self.over(schema)
        return [sort_order(over.column(key.expr), key) for key in keys]


def sort_order(column: Column, key: BoundSortKey) -> Column:
    """A column with the direction of a key and the place of its nulls."""
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()


def free_prefix(plan: Plan) -> str:
    """A prefix that no column of any node of the plan starts with."""
    names = {name for node in topological(plan) for name in node.schema.names}
    prefix = "_mp"
    while any(name.startswith(prefix) for name in names):
        prefix = "_" + prefix
    return prefix
