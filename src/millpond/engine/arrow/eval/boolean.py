"""Three-valued logic and conditions, which compute a part only on the rows that need it.

`and` stops at a false, `or` at a true, `if_else` takes one branch a row, `coalesce` goes on where
it has nulls: what is not reached can't fail, as in Spark. Parts that can't fail and are cheap are
computed on all rows instead, with one kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.layout import conform
from millpond.engine.arrow.eval.values import Kernel, Value, is_scalar, to_array, true_count
from millpond.plan.arrow import to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from millpond.engine.arrow.eval.frame import Frame
    from millpond.plan.bound import BoundCall, BoundExpr

    Steps = Generator[tuple[BoundExpr, Frame], Value, Value]

_WORTH_SELECTING = 0.5


def _junction(expr: BoundCall, frame: Frame) -> Steps:
    """`and`, `or`: part by part, the later ones only where the earlier ones did not decide."""
    decides = expr.function == "or"
    combine = pc.or_kleene if decides else pc.and_kleene
    result = yield expr.args[0], frame
    for part in expr.args[1:]:
        if is_scalar(result):
            if result.as_py() is decides:
                return result
            result = combine(result, (yield part, frame))
            continue
        undecided = _undecided(result, decides=decides)
        count = true_count(undecided)
        if count == 0:
            return result
        if _on_all_rows(part, frame, count):
            result = combine(result, (yield part, frame))
            continue
        value = yield part, frame.select(pc.indices_nonzero(undecided))
        value = to_array(value, count)
        if result.null_count:
            value = combine(result.filter(undecided), value)
        result = pc.replace_with_mask(result, undecided, value)
    return result


def _undecided(result: pa.BooleanArray, *, decides: bool) -> pa.BooleanArray:
    """Where a three-valued result could still change."""
    if result.null_count:
        result = result.fill_null(not decides)
    return pc.invert(result) if decides else result


def _on_all_rows(part: BoundExpr, frame: Frame, count: int) -> bool:
    """Whether a part may, and should, be computed on more rows than the `count` that need it."""
    if count == frame.length:
        return True
    if frame.program.may_fail(part):
        return False
    return not frame.program.is_heavy(part) or count > frame.length * _WORTH_SELECTING


def _if_else(expr: BoundCall, frame: Frame) -> Steps:
    condition, then, otherwise = expr.args
    chosen = yield condition, frame
    if is_scalar(chosen):
        return (yield (then if chosen.as_py() is True else otherwise), frame)
    if chosen.null_count:
        chosen = chosen.fill_null(False)
    count = true_count(chosen)
    if count in (0, frame.length):
        return (yield (then if count else otherwise), frame)
    rest = frame.length - count
    if _on_all_rows(then, frame, count) and _on_all_rows(otherwise, frame, rest):
        value = yield then, frame
        return pc.if_else(chosen, value, (yield otherwise, frame))
    taken, left = pc.indices_nonzero(chosen), pc.indices_nonzero(pc.invert(chosen))
    first = yield then, frame.select(taken)
    second = yield otherwise, frame.select(left)
    return _scatter(expr, ((taken, first), (left, second)))


def _coalesce(expr: BoundCall, frame: Frame) -> Steps:
    result = yield expr.args[0], frame
    for part in expr.args[1:]:
        if is_scalar(result):
            if result.is_valid:
                return result
            result = yield part, frame
            continue
        count = result.null_count
        if count == 0:
            return result
        if _on_all_rows(part, frame, count):
            result = pc.coalesce(result, (yield part, frame))
            continue
        missing = result.is_null()
        rows, others = pc.indices_nonzero(missing), pc.indices_nonzero(pc.invert(missing))
        value = yield part, frame.select(rows)
        result = _scatter(expr, ((others, result.take(others)), (rows, value)))
    return result


def _scatter(expr: BoundCall, parts: Sequence[tuple[pa.Array, Value]]) -> pa.Array:
    """Values that were computed on some rows each, back in row order."""
    wanted = to_arrow(expr.type)
    columns = [conform(to_array(value, len(rows)), wanted) for rows, value in parts]
    rows = np.concatenate([rows.to_numpy() for rows, _ in parts])
    order: np.ndarray[Any, Any] = np.empty(len(rows), np.int64)
    order[rows] = np.arange(len(rows))
    return pa.concat_arrays(columns).take(pa.array(order))


def _kernel(function: Callable[[Value], Value]) -> Kernel:
    def kernel(expr: BoundExpr, args: Sequence[Value]) -> Value:
        del expr
        return function(args[0])

    return kernel


def _is_nan(value: Value) -> Value:
    found = pc.is_nan(value)
    return pc.fill_null(found, False) if found.null_count else found


LAZY: Final[Mapping[str, Callable[[BoundCall, Frame], Steps]]] = {
    "and": _junction,
    "or": _junction,
    "if_else": _if_else,
    "coalesce": _coalesce,
}

KERNELS: Final[Mapping[str, Kernel]] = {
    "not": _kernel(pc.invert),
    "is_null": _kernel(pc.is_null),
    "is_not_null": _kernel(pc.is_valid),
    "is_nan": _kernel(_is_nan),
}
