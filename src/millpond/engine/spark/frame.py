"""A compiled node: a DataFrame, and what is known about the order of its rows.

Spark's rows have no order, a plan's rows do. A frame is *natural* when the order is that of the
partitions and of the rows inside them, as it is for a file or right after a sort; or it carries
hidden columns, its `keys`, whose ascending order (nulls last) is the order; or, where nobody above
needs it, it has none. Filters are gathered and applied together, so that a long chain of them is
one operator.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millpond.engine.spark.api import balanced

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context
    from millpond.plan.types import Struct


@dataclass(frozen=True, slots=True)
class _Condition:
    """A linked list of conditions, the latest first."""

    column: Column
    before: _Condition | None


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of a node: its columns by name, then the hidden keys."""

    base: DataFrame
    schema: Struct
    natural: bool = False
    keys: tuple[str, ...] = ()
    is_numbered: bool = False
    """Whether the only key is a number that each row has."""
    conditions: _Condition | None = None

    @property
    def df(self) -> DataFrame:
        """The rows with all gathered filters applied."""
        found: list[Column] = []
        condition = self.conditions
        while condition is not None:
            found.append(condition.column)
            condition = condition.before
        if not found:
            return self.base
        return self.base.filter(balanced(found[::-1], operator.and_))

    @property
    def is_ordered(self) -> bool:
        """Whether the order of the rows is known."""
        return self.natural or bool(self.keys)

    def where(self, condition: Column) -> Frame:
        """Only the rows for which the condition is true, in the same order."""
        return replace(self, conditions=_Condition(condition, self.conditions))

    def keyed(self, context: Context) -> Frame:
        """The same rows with their order in hidden columns, to sort by or to carry along."""
        if self.keys:
            return self
        assert self.natural, (
            "a compiler needs the order of its input, but demand.py does not ask for it"
        )
        key = context.hidden()
        ordinal = context.functions.monotonically_increasing_id()
        numbered = self.df.withColumn(key, ordinal)
        return Frame(numbered, self.schema, keys=(key,), natural=True, is_numbered=True)

    def visible(self, context: Context) -> DataFrame:
        """The columns of the node alone."""
        if not self.keys:
            return self.df
        return self.df.select(*(context.column(name) for name in self.schema.names))

    def in_order(self, context: Context) -> DataFrame:
        """The rows in partitions that follow each other in order, hidden columns dropped."""
        if self.natural or not self.keys:
            return self.visible(context)
        ordered = self.df.orderBy(*context.ascending(self.keys))
        return Frame(ordered, self.schema, keys=self.keys).visible(context)
