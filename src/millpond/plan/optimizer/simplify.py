"""One expression made simpler: literals computed, boolean logic shortened, nothing re-ordered.

An expression keeps its type and its value for every row. Parts that could raise are not removed,
except where evaluation never reaches them (`if_else` with a known condition, what follows a
literal in `coalesce`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.bound import BoundCall, BoundCast, BoundExpr, BoundLiteral, BoundQuantifier
from millpond.plan.optimizer.fold_calls import FALSE, NULL_IN_NULL_OUT, TRUE, fold_call
from millpond.plan.optimizer.fold_casts import fold_cast
from millpond.plan.raising import can_raise
from millpond.plan.tree import transform

if TYPE_CHECKING:
    from collections.abc import Iterable


def simplify(expr: BoundExpr) -> BoundExpr:
    """The same value for less work; the very same object where nothing can be done.

    >>> from millpond.plan.bind import bind
    >>> from millpond.plan.expr import col, lit
    >>> from millpond.plan.types import LONG, Struct
    >>> expr = bind(col("a") > lit(2) * 3, Struct.of(a=LONG))
    >>> expr, simplify(expr)
    ((a > (2 * 3)), (a > 6))
    """
    return transform(expr, _simplify_one)


def _simplify_one(node: BoundExpr) -> BoundExpr:
    if isinstance(node, BoundCast):
        return fold_cast(node) or node
    if isinstance(node, BoundQuantifier):
        null_list = isinstance(node.list, BoundLiteral) and node.list.value is None
        return BoundLiteral(None, node.type) if null_list else node
    if not isinstance(node, BoundCall):
        return node
    if node.function in ("and", "or"):
        return _logic(node)
    if node.function == "not":
        return _negation(node)
    if node.function == "if_else":
        return _choice(node)
    if node.function == "coalesce":
        return _first_value(node)
    folded = fold_call(node)
    if folded is not None:
        return folded
    if node.function in NULL_IN_NULL_OUT and _has_null(node.args) and not _any_raises(node.args):
        return BoundLiteral(None, node.type)
    return node


def _logic(node: BoundCall) -> BoundExpr:
    """`and` and `or`, flat: the neutral value goes, the other one decides."""
    neutral, decisive = (TRUE, FALSE) if node.function == "and" else (FALSE, TRUE)
    args: list[BoundExpr] = []
    for arg in node.args:
        same = isinstance(arg, BoundCall) and arg.function == node.function
        args.extend(arg.args if isinstance(arg, BoundCall) and same else (arg,))
    kept = [arg for arg in args if not _is(arg, neutral)]
    if any(_is(arg, decisive) for arg in kept) and not _any_raises(kept):
        return decisive
    if len(kept) > 1 and all(isinstance(arg, BoundLiteral) for arg in kept):
        # Neither value decided, so all of them are null.
        return BoundLiteral(None, node.type)
    if not kept:
        return neutral
    if len(kept) == 1:
        return kept[0]
    same = len(kept) == len(node.args) and all(a is b for a, b in zip(kept, node.args, strict=True))
    return node if same else BoundCall(node.function, tuple(kept), node.type)


def _negation(node: BoundCall) -> BoundExpr:
    inner = node.args[0]
    if isinstance(inner, BoundCall) and inner.function == "not":
        return inner.args[0]
    return fold_call(node) or node


def _choice(node: BoundCall) -> BoundExpr:
    condition, then, otherwise = node.args
    if isinstance(condition, BoundLiteral):
        return then if condition.value is True else otherwise
    return node


def _first_value(node: BoundCall) -> BoundExpr:
    kept: list[BoundExpr] = []
    for arg in node.args:
        if not isinstance(arg, BoundLiteral):
            kept.append(arg)
        elif arg.value is not None:
            kept.append(arg)
            break
    if not kept:
        return BoundLiteral(None, node.type)
    if len(kept) == 1:
        return kept[0]
    return node if len(kept) == len(node.args) else BoundCall("coalesce", tuple(kept), node.type)


def _is(expr: BoundExpr, literal: BoundLiteral) -> bool:
    return isinstance(expr, BoundLiteral) and expr.value is literal.value


def _has_null(args: Iterable[BoundExpr]) -> bool:
    return any(isinstance(arg, BoundLiteral) and arg.value is None for arg in args)


def _any_raises(args: Iterable[BoundExpr]) -> bool:
    return any(can_raise(arg) for arg in args)
