"""What is known of a node without data: whether values can make it fail, and whether it is heavy.

The machine computes a branch that can fail only on the rows that take it, as Spark does row by row;
what can't fail is computed on all rows where that is cheaper.
"""

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
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INTEGRAL,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    Primitive,
    as_decimal,
    is_fractional,
    is_integral,
)

_PARTIAL = frozenset({"divide", "int_divide", "remainder", "date_trunc", "time_bucket"})
_CHECKED = frozenset({"add", "subtract", "multiply", "negate", "abs"})
_HEAVY = frozenset(
    {
        *("lower", "upper", "trim", "contains", "starts_with", "ends_with", "like", "replace"),
        *("concat", "substring", "in"),
    }
)


def may_fail(node: BoundExpr) -> bool:
    """Whether some values of this node's arguments are an error."""
    if isinstance(node, BoundCall):
        return node.function in _PARTIAL or (node.function in _CHECKED and is_integral(node.type))
    if isinstance(node, BoundCast):
        return node.on_error == "error" and not _always_fits(node.arg.type, node.type)
    return False


def is_heavy(node: BoundExpr) -> bool:
    """Whether this node alone costs much more than comparing numbers."""
    if isinstance(node, BoundCall):
        return node.function in _HEAVY or any(arg.type in (STRING, BINARY) for arg in node.args)
    if isinstance(node, BoundCast):
        return any(isinstance(t, Decimal | List) or t == STRING for t in (node.type, node.arg.type))
    if isinstance(node, BoundPath):
        return not all(isinstance(step, Name) for step in node.steps)
    return isinstance(node, BoundParseJson | BoundQuantifier)


def _always_fits(source: DataType, target: DataType) -> bool:
    """Whether every value of one type is a value of the other."""
    if source in (NULL, target) or (target in (STRING, BINARY, BOOLEAN) and source != STRING):
        return True
    if isinstance(source, List) and isinstance(target, List):
        return _always_fits(source.element, target.element)
    if {source, target} <= {TIMESTAMP, TIMESTAMP_NTZ} or (target == DATE and source != STRING):
        return True
    if is_fractional(target):
        return source != STRING
    if source == BOOLEAN and is_integral(target):
        return True
    if isinstance(source, Primitive) and source in INTEGRAL and is_integral(target):
        return INTEGRAL.index(source) <= INTEGRAL.index(target)
    if isinstance(target, Decimal) and (is_integral(source) or isinstance(source, Decimal)):
        given = as_decimal(source)
        whole = target.precision - target.scale >= given.precision - given.scale
        return whole and target.scale >= given.scale
    return target == BINARY
