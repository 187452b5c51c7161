"""Comparisons in one total order: NaN equals NaN and is the largest number, -0.0 equals 0.0.

Arrow compares floating point numbers as IEEE 754 does, so NaN needs a second kernel, but only where
it could change the answer: against a literal, `=` and `<` need none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.values import Kernel, Value, is_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millpond.plan.bound import BoundExpr

_PLAIN: Final[Mapping[str, Callable[[Value, Value], Value]]] = {
    "eq": pc.equal,
    "ne": pc.not_equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}
_MIRROR: Final = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_NULL: Final = pa.scalar(None, pa.bool_())


def _compare(name: str) -> Kernel:
    def kernel(expr: BoundExpr, args: Sequence[Value]) -> Value:
        del expr
        return compare(name, args[0], args[1])

    return kernel


def compare(name: str, left: Value, right: Value) -> Value:
    """Two values of one type, at least one of them a column."""
    if pa.types.is_null(left.type):
        column = right if is_scalar(left) else left
        return pa.nulls(len(column), pa.bool_())
    if not pa.types.is_floating(left.type):
        return _PLAIN[name](left, right)
    if is_scalar(left):
        return _against_literal(_MIRROR[name], right, left)
    if is_scalar(right):
        return _against_literal(name, left, right)
    return _FLOATING[name](left, right)


def _against_literal(name: str, column: pa.Array, literal: pa.Scalar) -> pa.Array:
    value = literal.as_py()
    if value is not None and math.isnan(value):
        return _against_nan(name, column)
    plain = _PLAIN[name](column, literal)
    if name in ("gt", "ge") and value is not None:
        return pc.or_(plain, pc.is_nan(column))
    return plain


def _against_nan(name: str, column: pa.Array) -> pa.Array:
    nan = pc.is_nan(column)
    if name in ("eq", "ge"):
        return nan
    if name in ("ne", "lt"):
        return pc.invert(nan)
    # Everything is at most NaN and nothing is larger; or_ and and_ keep the nulls.
    return pc.or_(nan, True) if name == "le" else pc.and_(nan, False)


def _equal(left: pa.Array, right: pa.Array) -> pa.Array:
    both = pc.and_(pc.is_nan(left), pc.is_nan(right))
    return pc.or_(pc.equal(left, right), both)


def _less(left: pa.Array, right: pa.Array) -> pa.Array:
    below_nan = pc.and_not(pc.is_nan(right), pc.is_nan(left))
    return pc.or_(pc.less(left, right), below_nan)


_FLOATING: Final[Mapping[str, Callable[[pa.Array, pa.Array], pa.Array]]] = {
    "eq": _equal,
    "ne": lambda left, right: pc.invert(_equal(left, right)),
    "lt": _less,
    "gt": lambda left, right: _less(right, left),
    "le": lambda left, right: pc.invert(_less(right, left)),
    "ge": lambda left, right: pc.invert(_less(left, right)),
}


def _equal_null_safe(expr: BoundExpr, args: Sequence[Value]) -> Value:
    del expr
    left, right = args
    same = pc.fill_null(compare("eq", left, right), False)
    if _has_nulls(left) and _has_nulls(right):
        return pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
    return same


def _has_nulls(value: Value) -> bool:
    return not value.is_valid if isinstance(value, pa.Scalar) else value.null_count > 0


def _is_in(expr: BoundExpr, args: Sequence[Value]) -> Value:
    del expr
    column = args[0]
    choices = [arg if is_scalar(arg) else arg[0] for arg in args[1:]]
    if not choices:
        return pa.repeat(pa.scalar(False), len(column))
    valid = [choice for choice in choices if choice.is_valid]
    found = _matches(column, valid)
    if len(valid) < len(choices):
        return pc.if_else(found, True, _NULL)
    if column.null_count:
        return pc.if_else(pc.is_valid(column), found, _NULL)
    return found


def _matches(column: pa.Array, choices: Sequence[pa.Scalar]) -> pa.Array:
    if len(choices) == 1:
        return compare("eq", column, choices[0])
    values = [choice.as_py() for choice in choices]
    if pa.types.is_floating(column.type) and 0.0 in values:
        values += [0.0, -0.0]  # is_in tells them apart
    return pc.is_in(column, value_set=pa.array(values, column.type))


KERNELS: Final[Mapping[str, Kernel]] = {
    **{name: _compare(name) for name in _PLAIN},
    "eq_null_safe": _equal_null_safe,
    "in": _is_in,
}
