"""Which nodes are heavy: what can't fail is computed on all rows where that is the cheaper way."""

from __future__ import annotations

from millpond.plan.bound import (
    BoundCall,
    BoundCast,
    BoundExpr,
    BoundParseJson,
    BoundPath,
    BoundQuantifier,
)
from millpond.plan.paths import Name
from millpond.plan.types import BINARY, STRING, Decimal, List

_HEAVY = frozenset(
    {
        *("lower", "upper", "trim", "contains", "starts_with", "ends_with", "like", "replace"),
        *("concat", "substring", "in"),
    }
)


def is_heavy(node: BoundExpr) -> bool:
    """Whether this node alone costs much more than comparing numbers."""
    if isinstance(node, BoundCall):
        return node.function in _HEAVY or any(arg.type in (STRING, BINARY) for arg in node.args)
    if isinstance(node, BoundCast):
        return any(isinstance(t, Decimal | List) or t == STRING for t in (node.type, node.arg.type))
    if isinstance(node, BoundPath):
        return not all(isinstance(step, Name) for step in node.steps)
    return isinstance(node, BoundParseJson | BoundQuantifier)
