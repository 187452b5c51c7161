"""Which share of rows a predicate keeps.

| predicate | share |
|---|---|
| equality | 0.1, or 1 / distinct values |
| `<`, `<=`, `>`, `>=` | 0.3, or the share of the range between min and max |
| inequality | 0.9, or 1 - 1 / distinct values |
| is null | 0.1, or the share of nulls |
| string tests | 0.2 |
| anything else | 0.5 |

`and` multiplies, `or` unites, `not` complements; lists are taken to have four elements.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import TYPE_CHECKING, Any, Final

from millpond.plan.bound import (
    BoundCall,
    BoundCast,
    BoundExpr,
    BoundLiteral,
    BoundPath,
    BoundQuantifier,
)
from millpond.plan.cost.statistics import NOTHING
from millpond.plan.paths import format_path
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.cost.statistics import Statistics
    from millpond.plan.sources import ColumnStats

EQUALITY: Final = 0.1
RANGE: Final = 0.3
IS_NULL: Final = 0.1
TEXT: Final = 0.2
UNKNOWN: Final = 0.5
LIST_LENGTH: Final = 4

_FLIPPED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_TEXT_TESTS: Final = ("like", "contains", "starts_with", "ends_with")


def selectivity(predicate: BoundExpr, known: Statistics = NOTHING) -> float:
    """The share of rows, from 0 to 1, for which the predicate is true.

    >>> from millpond.plan.bind import bind
    >>> from millpond.plan.expr import col
    >>> from millpond.plan.sources import ColumnStats
    >>> from millpond.plan.types import LONG, Struct
    >>> over_90 = bind(col("a") > 90, Struct.of(a=LONG))
    >>> selectivity(over_90), selectivity(over_90, {"a": ColumnStats("a", min=0, max=100)})
    (0.3, 0.1)
    """
    share: dict[int, float] = {}
    for node in topological(predicate):
        parts = [share[id(child)] for child in node.children]
        share[id(node)] = round(min(1.0, max(0.0, _share(node, parts, known))), 12)
    return share[id(predicate)]


def _share(node: BoundExpr, parts: list[float], known: Statistics) -> float:
    if isinstance(node, BoundLiteral):
        return 1.0 if node.value is True else 0.0 if node.value in (False, None) else UNKNOWN
    if isinstance(node, BoundQuantifier):
        each = parts[1]
        return 1 - (1 - each) ** LIST_LENGTH if node.kind == "any" else each**LIST_LENGTH
    if not isinstance(node, BoundCall):
        return UNKNOWN
    if node.function == "and":
        return math.prod(parts)
    if node.function == "or":
        return 1 - math.prod(1 - part for part in parts)
    if node.function == "not":
        return 1 - parts[0]
    if node.function in _TEXT_TESTS:
        return TEXT
    return _test(node, known)


def _test(node: BoundCall, known: Statistics) -> float:
    """A test of one column, or of two."""
    function, args = node.function, node.args
    if function in _FLIPPED and isinstance(args[0], BoundLiteral):
        function, args = _FLIPPED[function], (args[1], args[0])
    stats = _stats_of(args[0], known) or (_stats_of(args[1], known) if len(args) > 1 else None)
    literal = args[1] if len(args) > 1 else None
    value = literal.value if isinstance(literal, BoundLiteral) else None
    if function in ("is_null", "is_not_null"):
        nulls = IS_NULL if stats is None or stats.null_fraction is None else stats.null_fraction
        return nulls if function == "is_null" else 1 - nulls
    if function == "eq_null_safe" and isinstance(literal, BoundLiteral) and value is None:
        return IS_NULL if stats is None or stats.null_fraction is None else stats.null_fraction
    if function in ("eq", "eq_null_safe"):
        return _equality(stats, value)
    if function == "in":
        values = [arg.value if isinstance(arg, BoundLiteral) else None for arg in args[1:]]
        return sum(_equality(stats, value) for value in values)
    if function == "ne":
        return 1 - _equality(stats, value)
    if function in _FLIPPED:
        return _range(function, stats, value)
    return IS_NULL if function == "is_nan" else UNKNOWN


def _stats_of(expr: BoundExpr, known: Statistics) -> ColumnStats | None:
    while isinstance(expr, BoundCast):
        expr = expr.arg
    if not isinstance(expr, BoundPath) or expr.scope != "row" or not known:
        return None
    return known.get(format_path(expr.steps))


def _equality(stats: ColumnStats | None, value: Any) -> float:
    if stats is None:
        return EQUALITY
    low, high, at = _number(stats.min), _number(stats.max), _number(value)
    if low is not None and high is not None and at is not None and not low <= at <= high:
        return 0.0
    share = EQUALITY if not stats.distinct else 1 / stats.distinct
    return share * (1 - (stats.null_fraction or 0.0))


def _range(function: str, stats: ColumnStats | None, value: Any) -> float:
    if stats is None:
        return RANGE
    there = 1 - (stats.null_fraction or 0.0)
    low, high, at = _number(stats.min), _number(stats.max), _number(value)
    if low is None or high is None or at is None:
        return RANGE * there
    if high <= low:
        below = float(low < at or (low == at and function in ("le", "gt")))
    else:
        below = min(1.0, max(0.0, (at - low) / (high - low)))
    return there * (below if function in ("lt", "le") else 1 - below)


def _number(value: Any) -> float | None:
    """A value's place on a line, for numbers and moments; None for what has no distances."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float | decimal.Decimal):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return moment.timestamp()
    if isinstance(value, dt.date):
        return dt.datetime.combine(value, dt.time(), dt.UTC).timestamp()
    return None
