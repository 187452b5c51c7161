"""Whether evaluating an expression can fail, depending on the data.

An optimized plan may fail less often than the plan as written, never more often. So whatever moves
a predicate to where it sees more rows asks here first, and so does whatever computes a branch on
rows that do not take it, or names the expression that failed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millpond.plan.bound import BoundCall, BoundCast, BoundLiteral
from millpond.plan.tree import topological
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DIGITS,
    INTEGRAL,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    Primitive,
    is_fractional,
    is_integral,
    is_numeric,
)

if TYPE_CHECKING:
    from millpond.plan.bound import BoundExpr

_OVERFLOWS = frozenset({"add", "subtract", "multiply", "negate", "abs"})
_DIVIDES = frozenset({"divide", "int_divide", "remainder"})
# At the far ends of time the result lies outside of it.
_TIMES = frozenset({"date_trunc", "time_bucket"})
_LIKE = re.compile(r"(?:[^\\]|\\[%_\\])*", re.DOTALL)


def can_raise(expr: BoundExpr) -> bool:
    """Whether some row can make this expression an error.

    >>> from millpond.plan.bind import bind
    >>> from millpond.plan.expr import col
    >>> from millpond.plan.types import LONG, STRING, Struct
    >>> schema = Struct.of(a=LONG, s=STRING)
    >>> [can_raise(bind(e, schema)) for e in (col("a") > 3, 1 / col("a") > 3, col("a") / 2 > 3)]
    [False, True, False]
    """
    return any(raises_itself(node) for node in topological(expr))


def raises_itself(node: BoundExpr) -> bool:
    """Whether some values of this node's own arguments are an error."""
    if isinstance(node, BoundCast):
        return node.on_error == "error" and not _always_fits(node.arg.type, node.type)
    if not isinstance(node, BoundCall):
        return False
    if node.function in _OVERFLOWS:
        return is_integral(node.type)
    if node.function in _DIVIDES:
        divisor = node.args[1]
        # The smallest number divided by -1 is one too large.
        return not isinstance(divisor, BoundLiteral) or divisor.value in (0, -1)
    if node.function == "like":
        pattern = node.args[1]
        return not isinstance(pattern, BoundLiteral) or not _LIKE.fullmatch(str(pattern.value))
    return node.function in _TIMES


def _always_fits(source: DataType, target: DataType) -> bool:
    if isinstance(source, List) and isinstance(target, List):
        return _always_fits(source.element, target.element)
    if source in (target, NULL) or target in (STRING, BOOLEAN):
        return source != STRING or target == STRING
    if source == STRING:
        return target == BINARY
    if source == BOOLEAN:
        return not isinstance(target, Decimal) or target.precision > target.scale
    if is_numeric(source):
        return _number_fits(source, target)
    return (source, target) in (
        (TIMESTAMP, DATE),
        (TIMESTAMP_NTZ, DATE),
        (TIMESTAMP, TIMESTAMP_NTZ),
        (TIMESTAMP_NTZ, TIMESTAMP),
    )


def _number_fits(source: DataType, target: DataType) -> bool:
    if is_fractional(target):
        return True
    if is_fractional(source) or target == DATE:
        return False
    if isinstance(target, Decimal):
        whole = target.precision - target.scale
        if isinstance(source, Decimal):
            return whole >= source.precision - source.scale and target.scale >= source.scale
        return isinstance(source, Primitive) and whole >= DIGITS[source]
    if isinstance(source, Decimal):
        return False
    return is_integral(target) and INTEGRAL.index(source) <= INTEGRAL.index(target)
