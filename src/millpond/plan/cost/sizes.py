"""How many rows a node gives, and how wide they are.

What can't be derived is None: the rows of a stored path, of a query text, of files of unknown size.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from millpond.plan.bound import BoundPath
from millpond.plan.cost.selectivity import LIST_LENGTH, UNKNOWN, selectivity
from millpond.plan.order import Head, Sample, Tail, Take, TopK
from millpond.plan.paths import format_path
from millpond.plan.rows import Aggregate, Filter, FilterOrdered, Join, Union
from millpond.plan.sources import DynamicScan, ListFiles, Scan, Stored, Values
from millpond.plan.streams import Sql
from millpond.plan.types import DataType, Decimal, List, Map, Primitive, Struct

if TYPE_CHECKING:
    from millpond.plan.cost.statistics import Statistics
    from millpond.plan.node import Plan

COMPRESSION: Final = 4
"""How much smaller a Parquet file is than its rows in memory."""
GROUPS: Final = 0.1
"""Groups a row, where the number of different keys is not known."""
_WIDTHS: Final = {
    "void": 0,
    "boolean": 1,
    "byte": 1,
    "short": 2,
    "integer": 4,
    "float": 4,
    "date": 4,
    "string": 24,
    "binary": 48,
    "variant": 96,
}


def width(type_: DataType) -> int:
    """Bytes of a value in memory, roughly."""
    if isinstance(type_, Primitive):
        return _WIDTHS.get(type_.name, 8)
    if isinstance(type_, Decimal):
        return 16
    if isinstance(type_, List):
        return 4 + LIST_LENGTH * width(type_.element)
    if isinstance(type_, Map):
        return 4 + LIST_LENGTH * (width(type_.key) + width(type_.value))
    return sum(width(field.type) for field in type_.fields)


def output_rows(node: Plan, inputs: list[float | None], known: Statistics) -> float | None:
    """How many rows a node gives, when its inputs give so many; `known` is about its input."""
    if isinstance(node, Values):
        return float(node.data.num_rows)
    if isinstance(node, Scan):
        return _scanned(node)
    if isinstance(node, DynamicScan) and node.expected_bytes is not None:
        return _unpacked(node, node.expected_bytes)
    if isinstance(node, ListFiles | Stored | Sql | DynamicScan):
        return None
    if isinstance(node, Head | TopK | Tail):
        return float(node.n) if inputs[0] is None else min(float(node.n), inputs[0])
    if isinstance(node, Take):
        return float(len(node.indices))
    if isinstance(node, Aggregate) and not node.keys:
        return 1.0
    if any(rows is None for rows in inputs):
        return float(node.n) if isinstance(node, Sample) and node.n is not None else None
    return _derived(node, [rows for rows in inputs if rows is not None], known)


def _scanned(node: Scan) -> float | None:
    if node.format == "bytes":
        return float(len(node.files))
    if all(file.rows is not None for file in node.files):
        return float(sum(file.rows or 0 for file in node.files))
    if any(file.size is None for file in node.files):
        return None
    return _unpacked(node, sum(file.size or 0 for file in node.files))


def _unpacked(node: Scan | DynamicScan, size: int) -> float:
    """How many rows so many bytes of files may hold."""
    unpacked = size * (COMPRESSION if node.format == "parquet" else 1)
    return float(math.ceil(unpacked / max(1, width(node.columns))))


def _derived(node: Plan, inputs: list[float], known: Statistics) -> float:
    rows = inputs[0]
    if isinstance(node, Filter):
        return rows * selectivity(node.predicate, known)
    if isinstance(node, FilterOrdered):
        return rows * UNKNOWN
    if isinstance(node, Union):
        return sum(inputs)
    if isinstance(node, Join):
        if node.how in ("semi", "anti"):
            return rows * UNKNOWN
        # One side's key is taken to be unique, which most joins are made for.
        return rows if node.how == "left" else max(inputs)
    if isinstance(node, Aggregate):
        return min(rows, _groups(node, rows, known))
    if isinstance(node, Sample):
        return rows * node.fraction if node.fraction is not None else min(rows, node.n or 0)
    return rows


def _groups(node: Aggregate, rows: float, known: Statistics) -> float:
    found = 1.0
    for key in node.keys:
        stats = known.get(format_path(key.expr.steps)) if isinstance(key.expr, BoundPath) else None
        if stats is None or not stats.distinct:
            return rows * GROUPS
        found *= stats.distinct
    return found


def leaf_count(schema: Struct) -> int:
    """How many leaf columns a schema has."""
    return len(leaf_paths(schema))


def leaf_paths(schema: Struct) -> tuple[str, ...]:
    """The leaf columns of a schema as path texts, in order.

    >>> from millpond.plan.types import LONG
    >>> leaf_paths(Struct.of(a=LONG, s=List(Struct.of(x=LONG, y=LONG))))
    ('a', 's[*].x', 's[*].y')
    """
    from millpond.plan.paths import Each, Name, Step

    found: list[str] = []
    todo: list[tuple[tuple[Step, ...], DataType]] = [((), schema)]
    while todo:
        steps, type_ = todo.pop()
        if isinstance(type_, Struct) and (type_.fields or not steps):
            below = [((*steps, Name(f.name)), f.type) for f in type_.fields]
            todo.extend(reversed(below))
        elif isinstance(type_, List) and isinstance(type_.element, Struct):
            todo.append(((*steps, Each()), type_.element))
        else:
            found.append(format_path(steps))
    return tuple(found)
