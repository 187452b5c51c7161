"""Which rows of its inputs a query needs for a range of its outcome: Spark's optimizer is asked.

The query is analysed over inputs without rows, with a filter on top, and optimized. A filter that
has come down to an input holds for every row that matters, whatever the query does in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.engine.spark.api import is_classic
from millpond.engine.spark.sql import query
from millpond.engine.spark.types import to_spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from millpond.plan.types import Struct

Range = tuple[int | None, int | None]
"""The first and last microsecond that matter; None is open."""


def pushed_ranges(
    text: str,
    inputs: Mapping[str, Struct],
    times: Mapping[str, str],
    wanted: tuple[str, int | None, int | None],
    session: SparkSession,
) -> dict[str, Range]:
    """A range for each input of which one is known; `times` are their columns with the time."""
    from pyspark.sql import functions as f

    if not is_classic(session):
        return {}
    empty = session.sparkContext.emptyRDD()
    views = {
        name: session.createDataFrame(empty, to_spark_schema(schema))
        for name, schema in inputs.items()
    }
    known = {
        _exprs(view._jdf.queryExecution().analyzed(), times[name]): name  # noqa: SLF001
        for name, view in views.items()
        if name in times
    }
    column, start, end = wanted
    frame = query(text, views, session)
    time = frame[f"`{column.replace('`', '``')}`"]
    if start is not None:
        frame = frame.filter(time >= f.timestamp_micros(f.lit(start)))
    if end is not None:
        frame = frame.filter(time <= f.timestamp_micros(f.lit(end)))
    optimized = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001
    if not optimized.subqueriesAll().isEmpty():
        return {}  # they read inputs, too, and are no children of the plan
    found: dict[str, Range] = {}
    for leaf, above in _leaves(optimized):
        ids = {_id(attribute) for attribute in _seq(leaf.output())}
        name = next((name for expr, name in known.items() if expr in ids), None)
        if name is None or name in found:
            return {}  # an input that stands twice, or something that is not understood
        found[name] = _range(above, next(e for e, n in known.items() if n == name))
    return found


def _exprs(plan: Any, column: str) -> int:
    return next(_id(attribute) for attribute in _seq(plan.output()) if attribute.name() == column)


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


def _seq(found: Any) -> Iterator[Any]:
    return (found.apply(number) for number in range(found.size()))


def _leaves(plan: Any) -> Iterator[tuple[Any, Any]]:
    """The inputs of a plan, each with the node right above it."""
    todo = [(plan, None)]
    while todo:
        node, above = todo.pop()
        children = list(_seq(node.children()))
        if not children:
            yield node, above
        todo += [(child, node) for child in children]


def _range(above: Any, time: int) -> Range:
    if above is None or above.getClass().getSimpleName() != "Filter":
        return None, None
    start: int | None = None
    end: int | None = None
    todo = [above.condition()]
    while todo:
        condition = todo.pop()
        kind = condition.getClass().getSimpleName()
        if kind == "And":
            todo += [condition.left(), condition.right()]
            continue
        value = _compared(condition, kind, time)
        if value is None:
            continue
        if kind in ("GreaterThanOrEqual", "GreaterThan", "EqualTo"):
            start = value if start is None else max(start, value)
        if kind in ("LessThanOrEqual", "LessThan", "EqualTo"):
            end = value if end is None else min(end, value)
    return start, end


def _compared(condition: Any, kind: str, time: int) -> int | None:
    """The moment that the time is compared with, if that is what a condition does."""
    if kind not in (
        "GreaterThanOrEqual", "GreaterThan", "LessThanOrEqual", "LessThan", "EqualTo",
    ):  # fmt: skip
        return None
    left, right = condition.left(), condition.right()
    if left.getClass().getSimpleName() != "AttributeReference" or _id(left) != time:
        return None
    if right.getClass().getSimpleName() != "Literal":
        return None
    value = right.value()
    return value if isinstance(value, int) else None
