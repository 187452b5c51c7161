"""Keys of floating point: `-0.0` and `0.0` are one key, and no filter may see which it was.

Spark itself treats them as equal where it groups and joins, but it also moves filters on a key
below the grouping or over to a join's other side, where the two still look different as text.
Adding zero makes the key a value of its own, which is `0.0` for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.spark.types import to_cast
from millpond.plan.types import is_fractional

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.expressions import Expressions
    from millpond.plan.bound import BoundExpr
    from millpond.plan.types import DataType


def key_column(expr: BoundExpr, over: Expressions, context: Context) -> Column:
    """A key to group, join or partition by."""
    return with_one_zero(over.column(expr), expr.type, context)


def with_one_zero(column: Column, type_: DataType, context: Context) -> Column:
    """A column of this type in which there is no `-0.0`."""
    if not is_fractional(type_):
        return column
    made: Column = column + context.functions.lit(0.0).cast(to_cast(type_))
    return made
