"""Whether a predicate can be true for any row, given the bounds of the columns it looks at.

Three-valued and sound: each part of the predicate is judged by whether it may be true and whether
it may be false somewhere (null is neither). What is not understood may be both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from millpond.engine.arrow.source.bounds import ALL_NULL, Bounds, comparable
from millpond.plan import types as t
from millpond.plan.bound import (
    BoundCall,
    BoundCast,
    BoundExpr,
    BoundLiteral,
    BoundPath,
    BoundQuantifier,
)
from millpond.plan.paths import Each, Name, Step

Lookup: TypeAlias = Callable[[tuple[str, ...], t.DataType], Bounds | None]
"""The bounds at a path of member names (`[]` for elements), read as a type; None: unknown."""


class Verdict(NamedTuple):
    """What a predicate may be, for some row."""

    true: bool
    false: bool
    null: bool = True


_OPEN = Verdict(true=True, false=True)
_NEVER = Verdict(true=False, false=False)
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_MIRRORED["eq_null_safe"] = "eq_null_safe"
_Base: TypeAlias = tuple[Step, ...] | None


def may_hold(predicate: BoundExpr, lookup: Lookup) -> bool:
    """Whether some row may satisfy the predicate."""
    done: dict[tuple[int, _Base], Verdict] = {}  # a part may stand in a predicate many times
    todo: list[tuple[BoundExpr, _Base]] = [(predicate, ())]
    while todo:
        node, base = todo[-1]
        if (id(node), base) in done:
            todo.pop()
            continue
        inner = _logical(node)
        if inner is None:
            done[id(node), base] = _judge(node, base, lookup)
            todo.pop()
            continue
        below = _element_base(node, base) if isinstance(node, BoundQuantifier) else base
        missing = [(part, below) for part in inner if (id(part), below) not in done]
        if missing:
            todo.extend(missing)
        else:
            done[id(node), base] = _combine(node, [done[id(part), below] for part in inner])
            todo.pop()
    return done[id(predicate), ()].true


def _logical(node: BoundExpr) -> tuple[BoundExpr, ...] | None:
    """The parts of a node that are judged before it; None if it is judged by itself."""
    if isinstance(node, BoundCall) and node.function in ("and", "or", "not", "coalesce"):
        return node.args
    if isinstance(node, BoundQuantifier) and node.kind == "any":
        return (node.predicate,)
    return None


def _combine(node: BoundExpr, parts: list[Verdict]) -> Verdict:
    if isinstance(node, BoundQuantifier):
        # Limits of a list's leaf hold for each element; an empty list makes it false.
        return Verdict(parts[0].true, false=True)
    assert isinstance(node, BoundCall)
    if node.function == "coalesce":
        return _first_known(parts)
    if node.function == "not":
        return Verdict(parts[0].false, parts[0].true, parts[0].null)
    null = any(p.null for p in parts)
    if node.function == "and":
        null = null and all(p.true or p.null for p in parts)
        return Verdict(all(p.true for p in parts), any(p.false for p in parts), null)
    null = null and all(p.false or p.null for p in parts)
    return Verdict(any(p.true for p in parts), all(p.false for p in parts), null)


def _first_known(parts: list[Verdict]) -> Verdict:
    """A later part counts only where all before it may be null."""
    true = false = False
    for part in parts:
        true, false = true or part.true, false or part.false
        if not part.null:
            return Verdict(true, false, null=False)
    return Verdict(true, false)


def _judge(node: BoundExpr, base: _Base, lookup: Lookup) -> Verdict:
    if isinstance(node, BoundLiteral):
        return Verdict(node.value is True, node.value is False, node.value is None)
    if isinstance(node, BoundPath):
        found = _bounds(node, base, lookup)
        return _OPEN if found is None else _compare("eq", found, True)
    if not isinstance(node, BoundCall):
        return _OPEN
    if node.function in ("is_null", "is_not_null"):
        return _judge_null(node, base, lookup)
    if node.function == "in":
        return _judge_in(node, base, lookup)
    if node.function == "starts_with":
        return _judge_prefix(node, base, lookup)
    if node.function in _MIRRORED:
        return _judge_comparison(node, base, lookup)
    return _OPEN


def _judge_null(node: BoundCall, base: _Base, lookup: Lookup) -> Verdict:
    found = _bounds(node.args[0], base, lookup)
    if found is None:
        return _OPEN
    null, value = found.may_be_null or found.all_null, not found.all_null
    if node.function == "is_null":
        return Verdict(null, value, null=False)
    return Verdict(value, null, null=False)


def _judge_in(node: BoundCall, base: _Base, lookup: Lookup) -> Verdict:
    found = _bounds(node.args[0], base, lookup)
    if found is None or not all(isinstance(arg, BoundLiteral) for arg in node.args[1:]):
        return _OPEN
    literals = [comparable(arg.value, arg.type) for arg in node.args[1:]]  # type: ignore[attr-defined]
    matches = any(_compare("eq", found, x).true for x in literals if x is not None)
    return Verdict(matches, false=True)


def _judge_prefix(node: BoundCall, base: _Base, lookup: Lookup) -> Verdict:
    found, prefix = _bounds(node.args[0], base, lookup), node.args[1]
    if found is None or not isinstance(prefix, BoundLiteral):
        return _OPEN
    if found.all_null or prefix.value is None:
        return _NEVER
    text: bytes = prefix.value.encode()
    above = found.low is not None and found.low[: len(text)] > text
    below = found.high is not None and found.high < text
    return Verdict(not above and not below, false=True)


def _judge_comparison(node: BoundCall, base: _Base, lookup: Lookup) -> Verdict:
    function, (left, right) = node.function, node.args
    if isinstance(left, BoundLiteral):
        function, left, right = _MIRRORED[function], right, left
    if not isinstance(right, BoundLiteral):
        return _OPEN
    found = _bounds(left, base, lookup)
    if found is None:
        return _OPEN
    value = comparable(right.value, right.type)
    if function == "eq_null_safe":
        if value is None:
            return Verdict(found.may_be_null or found.all_null, not found.all_null, null=False)
        return Verdict(_compare("eq", found, value).true, false=True, null=False)
    null = value is None or found.may_be_null or found.all_null
    return _compare(function, found, value)._replace(null=null)


def _compare(function: str, found: Bounds, value: Any) -> Verdict:
    """A comparison of values within bounds with a literal, in the order where NaN is largest."""
    if found.all_null or value is None:
        return _NEVER
    if isinstance(value, float) and math.isnan(value):
        return _OPEN
    low, high = found.low, None if found.may_be_nan else found.high
    equal_high = found.high
    if function in ("eq", "ne"):
        may_equal = (low is None or low <= value) and (equal_high is None or value <= equal_high)
        all_equal = low is not None and low == high == value
        return (
            Verdict(may_equal, not all_equal)
            if function == "eq"
            else Verdict(not all_equal, may_equal)
        )
    if function in ("lt", "ge"):
        less = low is None or low < value
        not_less = high is None or high >= value
        return Verdict(less, not_less) if function == "lt" else Verdict(not_less, less)
    less = low is None or low <= value
    more = high is None or high > value
    return Verdict(less, more) if function == "le" else Verdict(more, less)


def _bounds(expr: BoundExpr, base: _Base, lookup: Lookup) -> Bounds | None:
    """The bounds of a path, or of one that is only widened."""
    casts: list[BoundCast] = []
    while isinstance(expr, BoundCast):
        casts.append(expr)
        expr = expr.arg
    found = _bounds_of_path(expr, base, lookup) if isinstance(expr, BoundPath) else None
    for cast in reversed(casts):
        if found is None or cast.arg.type == cast.type:
            return None
        found = _widened(found, cast.arg.type, cast.type)
    return found


def _bounds_of_path(expr: BoundPath, base: _Base, lookup: Lookup) -> Bounds | None:
    if expr.scope == "element" and base is None:
        return None
    if any(isinstance(step, Each) for step in expr.steps):
        return None
    steps = expr.steps if expr.scope == "row" else (*(base or ()), *expr.steps)
    names = tuple(step.name if isinstance(step, Name) else "[]" for step in steps)
    found = lookup(names, expr.type)
    # One element of a list may be missing where no value is null.
    picked = any(not isinstance(step, Name) for step in expr.steps)
    return found.with_nulls() if found is not None and picked else found


def _widened(found: Bounds, source: t.DataType, target: t.DataType) -> Bounds | None:
    if found is ALL_NULL:
        return found
    if t.is_integral(source) and t.is_integral(target):
        wider = t.common_type(source, target) == target
        return found if wider else None
    if t.is_fractional(target) and (
        t.is_integral(source) or (source, target) == (t.FLOAT, t.DOUBLE)
    ):
        if target == t.FLOAT:
            return None
        low, high = (None if x is None else float(x) for x in (found.low, found.high))
        return Bounds(low, high, found.may_be_null, may_be_nan=found.may_be_nan)
    return None


def _element_base(node: BoundQuantifier, base: _Base) -> _Base:
    """Where a quantifier's elements live; None if that is no single place."""
    path = node.list
    if not isinstance(path, BoundPath) or (path.scope == "element" and base is None):
        return None
    spread = sum(isinstance(step, Each) for step in path.steps)
    if spread > 1:
        return None
    steps = path.steps if path.scope == "row" else (*(base or ()), *path.steps)
    return steps if spread else (*steps, Each())
