"""A plan becomes one DataFrame: each node, children first, by the compiler of its kind.

Compilers take the node, the frames of its inputs, and whether anyone looks at the order of the
rows. Nothing here recurses, but Spark's own analyzer does: chains of filters, heads and plain
column choices are fused, and of other operators some hundreds may stand on top of each other.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import EngineError
from millpond.engine.spark import (
    aggregate,
    dynamic,
    joins,
    order,
    positions,
    pythonic,
    rows,
    scans,
    sql,
    values,
    windows,
)
from millpond.engine.spark.api import is_classic
from millpond.engine.spark.demand import order_demands
from millpond.engine.spark.types import all_nullable, from_spark
from millpond.plan import order as o
from millpond.plan import rows as r
from millpond.plan import sources as s
from millpond.plan import streams as m
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.types import StructType

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.frame import Frame
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct

_COMPILERS: Final[Mapping[type, Callable[..., Frame]]] = {
    s.Scan: scans.compile_scan,
    s.Values: values.compile_values,
    s.ListFiles: values.compile_list_files,
    r.Filter: rows.compile_filter,
    r.Project: rows.compile_project,
    r.ParseJson: rows.compile_parse_json,
    r.Union: rows.compile_union,
    r.Aggregate: aggregate.compile_aggregate,
    o.Sort: order.compile_sort,
    o.TopK: order.compile_top_k,
    o.Head: order.compile_head,
    o.Tail: order.compile_tail,
    s.DynamicScan: dynamic.compile_dynamic_scan,
    r.FilterOrdered: pythonic.compile_filter_ordered,
    r.Join: joins.compile_join,
    o.Take: positions.compile_take,
    o.Sample: positions.compile_sample,
    o.Shuffle: positions.compile_shuffle,
    m.StatefulFunction: pythonic.compile_stateful,
    m.Window: windows.compile_window,
    m.Sql: sql.compile_sql,
}


def compile_plan(plan: Plan, context: Context, *, ordered: bool) -> Frame:
    """The plan's rows; with `ordered`, their order is known."""
    demands = order_demands(plan, ordered=ordered)
    frames: dict[int, Frame] = {}
    for node in _compiled(plan):
        inputs = [frames[id(child)] for child in _inputs(node)]
        compiler: Any = _COMPILERS[type(node)]
        frames[id(node)] = compiler(node, inputs, context, ordered=demands[id(node)])
    frame = frames[id(plan)]
    _check_types(plan, frame)
    return frame


def _inputs(node: Plan) -> tuple[Plan, ...]:
    """The plans that become part of the DataFrame: what names a dynamic scan's files is run."""
    return () if isinstance(node, s.DynamicScan) else node.children


def _compiled(plan: Plan) -> list[Plan]:
    needed: set[int] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        if id(node) not in needed:
            needed.add(id(node))
            stack.extend(_inputs(node))
    return [node for node in topological(plan) if id(node) in needed]


def _check_types(plan: Plan, frame: Frame) -> None:
    """Spark's types have to be the plan's: a difference is a fault of a compiler."""
    base: Any = frame.base
    if is_classic(base.sparkSession):
        _check_text(plan.schema, base._jdf.schema().json())  # noqa: SLF001 - read once, see there
    else:
        _check(plan.schema, base.schema)


@lru_cache(maxsize=256)
def _check_text(schema: Struct, described: str) -> None:
    """As Spark describes its types; to read that takes as long as making a small DataFrame."""
    from pyspark.sql.types import StructType

    _check(schema, StructType.fromJson(json.loads(described)))


def _check(schema: Struct, made_by_spark: StructType) -> None:
    found = {field.name: field for field in made_by_spark.fields}
    for field in schema:
        made = from_spark(found[field.name].dataType)
        if all_nullable(made) != all_nullable(field.type):
            raise EngineError(
                f"Spark gives {field.name!r} as {made}, the plan says {field.type}", engine="spark"
            )
