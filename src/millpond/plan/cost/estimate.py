"""Rows, bytes and time of every node of a plan, before anything is read.

Costs are microseconds of one core: a byte read 1/500, a row group opened 100, a file opened 1,000,
and for each row what its node does with it. A limit above streaming nodes makes them cheaper: rows
that nobody asks for are not read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from millpond.plan.bound import BoundExpr, conjuncts
from millpond.plan.cost.expressions import (
    PER_ROW,
    VECTORISED,
    expression_cost,
    expressions_cost,
)
from millpond.plan.cost.selectivity import selectivity
from millpond.plan.cost.sizes import output_rows, width
from millpond.plan.cost.statistics import NOTHING, Statistics, node_statistics
from millpond.plan.order import Head, Shuffle, Sort, Tail, TopK
from millpond.plan.rewrite import own_expressions
from millpond.plan.rows import Aggregate, Filter, FilterOrdered, Join, ParseJson, Project, Union
from millpond.plan.sources import DynamicScan, Scan
from millpond.plan.streams import StatefulFunction, Window
from millpond.plan.tree import topological
from millpond.plan.types import Struct

if TYPE_CHECKING:
    from millpond.plan.node import Plan

BYTE: Final = 1 / 500
ROW_GROUP: Final = 100.0
FILE: Final = 1000.0
ROW_GROUP_ROWS: Final = 65_536
POSITION_BYTES: Final = 16
"""What a sort keeps of a row besides its keys: where the row is, and where it goes."""

_STREAMING = (Filter, FilterOrdered, Project, ParseJson, StatefulFunction, Head, Union)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is expected of one node. None is unknown; `total_cost` includes everything below."""

    rows: float | None = None
    bytes_read: float | None = 0.0
    files: int = 0
    row_groups: int | None = 0
    cpu_per_row: float = 0.0
    held_bytes: float | None = 0.0
    cost: float | None = 0.0
    total_cost: float | None = 0.0
    asked: float = 1.0
    """The share of its rows that a limit above lets through."""


def estimate(plan: Plan) -> Estimate:
    """What is expected of a plan as a whole: its rows, and the sums of everything below.

    >>> from millpond.plan.expr import col
    >>> from millpond.plan.make import values
    >>> print(estimate(values([{"a": n} for n in range(100)]).filter(col("a") == 1)).rows)
    10.0
    """
    nodes = estimate_nodes(plan)
    root = nodes[-1]
    return Estimate(
        rows=root.rows,
        bytes_read=_total([node.bytes_read for node in nodes]),
        files=sum(node.files for node in nodes),
        row_groups=_whole(_total([node.row_groups for node in nodes])),
        cpu_per_row=root.cpu_per_row,
        held_bytes=_total([node.held_bytes for node in nodes]),
        cost=root.cost,
        total_cost=_total([node.cost for node in nodes]),
    )


def estimate_nodes(plan: Plan) -> tuple[Estimate, ...]:
    """What is expected of each node, in the order of `topological(plan)`."""
    order = topological(plan)
    known = node_statistics(plan)
    rows: dict[int, float | None] = {}
    for node in order:
        given = [rows[id(child)] for child in node.children]
        below = known[id(node.children[0])] if node.children else NOTHING
        rows[id(node)] = output_rows(node, given, below)
    asked = _asked(order, rows)
    made: dict[int, Estimate] = {}
    for node in order:
        inputs = [made[id(child)] for child in node.children]
        below = known[id(node.children[0])] if node.children else NOTHING
        per_row = _cpu_per_row(node, below)
        made[id(node)] = _estimate(node, inputs, rows[id(node)], asked[id(node)], per_row)
    return tuple(made[id(node)] for node in order)


def _asked(order: list[Plan], rows: dict[int, float | None]) -> dict[int, float]:
    """Which share of a node's rows is asked for: limits reach through what streams."""
    asked: dict[int, float] = {id(order[-1]): 1.0}
    for node in reversed(order):
        share = asked[id(node)] if isinstance(node, _STREAMING) else 1.0
        for child in node.children:
            below = rows[id(child)]
            if isinstance(node, Head) and below:
                share = min(share, 1.0, node.n / below)
            asked[id(child)] = max(asked.get(id(child), 0.0), share)
    return asked


def _estimate(
    node: Plan, inputs: list[Estimate], rows: float | None, asked: float, per_row: float
) -> Estimate:
    seen = _total([_given(item) for item in inputs]) if inputs else rows
    read: tuple[float | None, int, int | None] = (0.0, 0, 0)
    if isinstance(node, Scan | DynamicScan):
        read = _reading(node, inputs, rows, asked)
    cost = None if seen is None else seen * per_row
    if isinstance(node, Scan | DynamicScan):
        size, files, groups = read
        unknown = size is None or groups is None
        cost = None if unknown else (size or 0) * BYTE + (groups or 0) * ROW_GROUP + files * FILE
    return Estimate(
        rows=rows,
        bytes_read=read[0],
        files=read[1],
        row_groups=read[2],
        cpu_per_row=per_row,
        held_bytes=_held(node, inputs, rows),
        cost=cost,
        total_cost=_total([cost, *(item.total_cost for item in inputs)]),
        asked=asked,
    )


def _given(item: Estimate) -> float | None:
    return None if item.rows is None else item.rows * item.asked


def _reading(
    node: Scan | DynamicScan, inputs: list[Estimate], rows: float | None, asked: float
) -> tuple[float | None, int, int | None]:
    """Bytes, files and row groups that a scan reads."""
    if isinstance(node, Scan):
        count = len(node.files)
        sizes = [file.size for file in node.files]
        size = None if None in sizes else float(sum(s or 0 for s in sizes))
    else:
        count = math.ceil(inputs[0].rows or 0)
        size = None if node.expected_bytes is None else float(node.expected_bytes)
    if rows is not None and node.format == "parquet":
        # Only the wanted columns are read, so it is no more than they are wide.
        own = Struct(tuple(f for f in node.columns if f.name not in node.constants))
        wide = rows * width(own)
        size = wide if size is None else min(size, wide)
    groups = None
    if rows is not None:
        groups = math.ceil(rows * asked / ROW_GROUP_ROWS)
    files = math.ceil(count * asked)
    return None if size is None else size * asked, files, groups


def _cascade(predicate: BoundExpr, known: Statistics) -> float:
    """A predicate's cost a row: each conjunct sees only what those before it let through."""
    cost, share = 0.0, 1.0
    for part in conjuncts(predicate):
        cost += share * expression_cost(part)
        share *= selectivity(part, known)
    return cost


def _cpu_per_row(node: Plan, known: Statistics) -> float:
    if isinstance(node, Filter):
        return _cascade(node.predicate, known)
    own = expressions_cost(own_expressions(node))
    if isinstance(node, FilterOrdered):
        return PER_ROW
    if isinstance(node, StatefulFunction):
        return own + PER_ROW * len(node.mappings)
    if isinstance(node, ParseJson):
        return PER_ROW
    if isinstance(node, Sort):
        return own + 3 * VECTORISED
    if isinstance(node, TopK | Join | Aggregate):
        return own + 2 * VECTORISED
    if isinstance(node, Window):
        return own + 4 * VECTORISED * len(node.calls)
    if isinstance(node, Project):
        return own
    return 0.0 if not node.children else VECTORISED / 10


def _held(node: Plan, inputs: list[Estimate], rows: float | None) -> float | None:
    """What a node keeps in memory while it runs, in bytes."""
    given = inputs[0].rows if inputs else None
    if isinstance(node, Sort):
        keys = sum(width(key.expr.type) for key in node.keys)
        return None if given is None else given * (POSITION_BYTES + keys)
    if isinstance(node, Shuffle):
        return None if given is None else given * POSITION_BYTES
    if isinstance(node, Join):
        build = inputs[1].rows
        return None if build is None else build * (8 + width(node.right.schema))
    if isinstance(node, Aggregate | Tail | TopK):
        return None if rows is None else rows * (8 + width(node.schema))
    if isinstance(node, Window):
        return None if given is None else given * width(node.schema)
    return 0.0


def _total(numbers: list[float | None] | list[int | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return float(sum(known)) if len(known) == len(numbers) else None


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
