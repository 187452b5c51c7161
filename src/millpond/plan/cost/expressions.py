"""What evaluating an expression costs a row, in microseconds of one core.

A vectorised step costs 0.1, one over texts 0.2, a step that is Python or parses text row by row
1.0. Paths and literals cost nothing of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.plan.bound import (
    BoundCall,
    BoundCast,
    BoundExpr,
    BoundParseJson,
    BoundQuantifier,
)
from millpond.plan.cost.selectivity import LIST_LENGTH
from millpond.plan.tree import topological
from millpond.plan.types import BINARY, STRING

if TYPE_CHECKING:
    from collections.abc import Iterable

VECTORISED: Final = 0.1
PER_ROW: Final = 1.0
TEXT: Final = 0.2
_TEXT_FUNCTIONS: Final = frozenset(
    {"like", "contains", "starts_with", "ends_with", "lower", "upper", "trim", "replace"}
    | {"concat", "substring"}
)
_COMPARISONS: Final = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe", "in"})


def expression_cost(expr: BoundExpr) -> float:
    """Microseconds a row; a part that is mentioned more than once is computed once.

    >>> from millpond.plan.bind import bind
    >>> from millpond.plan.expr import col
    >>> from millpond.plan.types import LONG, STRING, Struct
    >>> schema = Struct.of(a=LONG, s=STRING)
    >>> [expression_cost(bind(e, schema)) for e in (col("a") > 3, col("s").like("%x"))]
    [0.1, 0.2]
    """
    parts = topological(expr)
    cost = sum(map(_own, parts), 0.0)
    for node in parts:
        if isinstance(node, BoundQuantifier):
            cost += expression_cost(node.predicate) * (LIST_LENGTH - 1)
    return round(cost, 6)


def expressions_cost(exprs: Iterable[BoundExpr]) -> float:
    """The cost of several expressions a row."""
    return sum(expression_cost(expr) for expr in exprs)


def _own(node: BoundExpr) -> float:
    if isinstance(node, BoundParseJson):
        return PER_ROW
    if isinstance(node, BoundCast):
        return TEXT if STRING in (node.type, node.arg.type) else VECTORISED
    if isinstance(node, BoundCall):
        compares_texts = node.function in _COMPARISONS and node.args[0].type in (STRING, BINARY)
        return TEXT if compares_texts or node.function in _TEXT_FUNCTIONS else VECTORISED
    return VECTORISED if isinstance(node, BoundQuantifier) else 0.0
