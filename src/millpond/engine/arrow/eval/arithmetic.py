"""Arithmetic: checked for whole numbers at every width, exact for decimals, IEEE 754 for the rest.

Arrow's checked kernels say only `overflow`; the slow look for the first row that did it happens
when there is an error to explain.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.values import (
    Kernel,
    Value,
    all_true,
    as_columns,
    fail,
    from_raw,
    is_scalar,
    null_mask,
    raw,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millpond.base.errors import EvaluationError
    from millpond.plan.bound import BoundExpr

_WIDER = "cast to a wider type first, for example to decimal or double"
_ZERO = "guard the divisor: if_else(divisor == 0, ..., x / divisor)"


def _checked(
    checked: Callable[..., Value], unchecked: Callable[..., Value], exact: Callable[..., int]
) -> Kernel:
    def kernel(expr: BoundExpr, args: Sequence[Value]) -> Value:
        if not pa.types.is_integer(args[0].type):
            return unchecked(*args)
        try:
            return checked(*args)
        except pa.ArrowInvalid:
            raise _overflow(expr, args, exact) from None

    return kernel


def _overflow(expr: BoundExpr, args: Sequence[Value], exact: Callable[..., int]) -> EvaluationError:
    """The error of the first row whose exact result does not fit."""
    bits = args[0].type.bit_width
    rows = zip(*(column.to_pylist() for column in as_columns(args)), strict=True)
    for row in rows:
        if None not in row and not -(1 << (bits - 1)) <= exact(*row) < 1 << (bits - 1):
            shown = f"{' and '.join(map(str, row))} overflow {expr.type}"
            return fail(expr, shown, hint=_WIDER)
    return fail(expr, f"overflow of {expr.type}", hint=_WIDER)


def _divide(expr: BoundExpr, args: Sequence[Value]) -> Value:
    _refuse_zero(expr, args)
    return pc.divide(*args)


def _refuse_zero(expr: BoundExpr, args: Sequence[Value]) -> None:
    """A zero divisor is an error where there is something to divide: null / 0 is null."""
    dividend, divisor = args
    if is_scalar(divisor):
        zero = divisor.is_valid and divisor.as_py() == 0
        if zero and dividend.null_count < len(dividend):
            raise fail(expr, "division by zero", hint=_ZERO)
        return
    safe = pc.not_equal(divisor, pa.scalar(0, divisor.type))
    if all_true(safe):
        return
    needed = dividend.is_valid if is_scalar(dividend) else pc.is_valid(dividend)
    if not all_true(pc.or_(safe, pc.invert(pa.scalar(needed) if is_scalar(dividend) else needed))):
        raise fail(expr, "division by zero", hint=_ZERO)


def _int_divide(expr: BoundExpr, args: Sequence[Value]) -> Value:
    _refuse_zero(expr, args)
    try:
        return pc.divide_checked(*_safe_divisor(args))
    except pa.ArrowInvalid:
        raise fail(expr, f"{-(1 << 63)} div -1 overflows {expr.type}", hint=_WIDER) from None


def _safe_divisor(args: Sequence[Value]) -> tuple[Value, Value]:
    """Zero divisors that stand beside nulls only, as nulls."""
    dividend, divisor = args
    if is_scalar(divisor):
        zero = divisor.is_valid and divisor.as_py() == 0
        return dividend, pa.scalar(None, divisor.type) if zero else divisor
    zero = pc.equal(divisor, pa.scalar(0, divisor.type))
    if not pc.any(zero).as_py():
        return dividend, divisor
    return dividend, pc.if_else(zero, pa.scalar(None, divisor.type), divisor)


def _remainder(expr: BoundExpr, args: Sequence[Value]) -> Value:
    _refuse_zero(expr, args)
    left, right = as_columns(args)
    divisor: np.ndarray[Any, Any] = raw(right)
    zero = divisor == 0
    if zero.any():
        divisor = np.where(zero, divisor.dtype.type(1), divisor)
    return from_raw(np.fmod(raw(left), divisor), left.type, null_mask(left, right))


KERNELS: Final[Mapping[str, Kernel]] = {
    "add": _checked(pc.add_checked, pc.add, operator.add),
    "subtract": _checked(pc.subtract_checked, pc.subtract, operator.sub),
    "multiply": _checked(pc.multiply_checked, pc.multiply, operator.mul),
    "negate": _checked(pc.negate_checked, pc.negate, operator.neg),
    "abs": _checked(pc.abs_checked, pc.abs, operator.abs),
    "divide": _divide,
    "int_divide": _int_divide,
    "remainder": _remainder,
}
