"""A case: one query, written for the plan, for DuckDB and for Spark by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from millpond.plan.node import Plan

Order: TypeAlias = Literal["sorted", "kept", "free"]
"""Whether the query sorts its rows, keeps the file's order where the engine has one, or neither.

DuckDB keeps a file's order by default and the Arrow engine always does; Spark does neither by hand
nor through the engine, unless the query sorts.
"""

AS_FAST: Final = 1.0
NEARLY: Final = 1.3
SPARK_LIMIT: Final = 1.05


@dataclass(frozen=True, slots=True)
class Case:
    """One query for every contender.

    `sql` has `{events}` where the file goes. `arrow_limit` is the most CPU time that the Arrow
    engine may take, as a multiple of DuckDB's; `spark_limit` is the same for the Spark engine and
    Spark by hand. What has no limit is measured to be looked at.
    """

    name: str
    plan: Callable[[Plan], Plan]
    sql: str
    spark: Callable[[DataFrame], DataFrame]
    order: Order = "kept"
    arrow_limit: float | None = NEARLY
    spark_limit: float | None = SPARK_LIMIT
