"""The walk over an expression: a stack of generators, each asking for the values that it needs.

A generator yields `(node, frame)` and is sent the node's value on that frame. So a chain of any
depth needs no recursion, and conditions ask for branches only on the rows that take them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from millpond.base.errors import EvaluationError, UnsupportedExpressionError
from millpond.engine.arrow.eval import arithmetic, boolean, compare, dates, lists, strings
from millpond.engine.arrow.eval.casts import cast
from millpond.engine.arrow.eval.frame import Frame
from millpond.engine.arrow.eval.json import parse_json
from millpond.engine.arrow.eval.layout import conform
from millpond.engine.arrow.eval.paths import walk
from millpond.engine.arrow.eval.program import program
from millpond.engine.arrow.eval.values import Kernel, Value, fail, is_scalar, to_array
from millpond.plan.arrow import to_arrow
from millpond.plan.bound import (
    BoundCall,
    BoundCast,
    BoundExpr,
    BoundLiteral,
    BoundParseJson,
    BoundPath,
    BoundQuantifier,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Steps: TypeAlias = Generator[tuple[BoundExpr, Frame], Value, Value]
Lazy: TypeAlias = Callable[[BoundCall, Frame], Steps]

_KERNELS: Final[Mapping[str, Kernel]] = {
    **compare.KERNELS,
    **boolean.KERNELS,
    **arithmetic.KERNELS,
    **strings.KERNELS,
    **dates.KERNELS,
}
_LAZY: Final[Mapping[str, Lazy]] = boolean.LAZY

ARROW_FUNCTIONS: Final[frozenset[str]] = frozenset(_KERNELS) | frozenset(_LAZY)
"""The functions of `plan.functions` that this engine evaluates."""


def evaluate(expr: BoundExpr, batch: pa.RecordBatch) -> pa.Array:
    """The value of an expression for each row, as a column of exactly the expression's type."""
    wanted = to_arrow(expr.type)
    if batch.num_rows == 0:
        return pa.array([], wanted)
    try:
        if isinstance(expr, BoundPath):  # most are
            return walk(expr, batch)
        value = to_array(_value(expr, batch), batch.num_rows)
        return value if value.type == wanted else conform(value, wanted)
    except pa.ArrowException as problem:
        raise _explained(problem, expr) from None


def evaluate_mask(expr: BoundExpr, batch: pa.RecordBatch) -> pa.BooleanArray:
    """The rows for which a predicate is true: not false, not null."""
    mask = evaluate(expr, batch)
    return mask.fill_null(False) if mask.null_count else mask


def _value(expr: BoundExpr, batch: pa.RecordBatch) -> Value:
    ready = program(expr)
    frame = Frame(ready, batch, batch.num_rows)
    leaf = _immediate(ready.root, frame)
    return leaf if leaf is not None else _run(ready.root, frame)


def _run(root: BoundExpr, frame: Frame) -> Value:
    stack = [(root, frame, _start(root, frame))]
    value: Value | None = None
    error: Exception | None = None
    while True:
        node, where, steps = stack[-1]
        try:
            asked = steps.throw(error) if error is not None else steps.send(value)
        except StopIteration as stop:
            stack.pop()
            value, error = stop.value, None
            where.remember(node, value)
        except (EvaluationError, pa.ArrowException) as problem:
            stack.pop()
            error = _explained(problem, node)
            if not stack:
                raise error from None
            continue
        else:
            value, error = _immediate(*asked), None
            if value is None:
                stack.append((*asked, _start(*asked)))
        if not stack:
            return value


def _immediate(node: BoundExpr, frame: Frame) -> Value | None:
    """The value of a node that needs no work of its own."""
    if isinstance(node, BoundLiteral):
        return frame.program.scalars[id(node)]
    if frame.length == 0:
        # Nothing is computed where nobody looks: 1 / 0 over no rows is no error.
        return pa.array([], to_arrow(node.type))
    return frame.path(node) if isinstance(node, BoundPath) else frame.known(node)


def _start(node: BoundExpr, frame: Frame) -> Steps:
    if isinstance(node, BoundCall):
        lazy = _LAZY.get(node.function)
        if lazy is not None:
            return lazy(node, frame)
        kernel = _KERNELS.get(node.function)
        if kernel is None:
            raise UnsupportedExpressionError(node.function, "arrow")
        return _apply(node, frame, kernel)
    if isinstance(node, BoundQuantifier):
        return lists.quantify(node, frame)
    if isinstance(node, BoundCast):
        return _apply(node, frame, cast)
    if isinstance(node, BoundParseJson):
        return _apply(node, frame, parse_json)
    raise UnsupportedExpressionError(type(node).__name__, "arrow")


def _apply(node: BoundExpr, frame: Frame, kernel: Kernel) -> Steps:
    args: list[Value] = []
    for child in node.children:
        args.append((yield child, frame))  # noqa: PERF401 (a generator's yield)
    if all(is_scalar(arg) for arg in args):
        result = kernel(node, [to_array(arg, 1) for arg in args])
        return result[0]
    return kernel(node, args)


def _explained(problem: Exception, node: BoundExpr) -> Exception:
    if isinstance(problem, EvaluationError):
        return problem
    if isinstance(problem, pa.ArrowNotImplementedError):
        return UnsupportedExpressionError(f"{node} ({problem})", "arrow")
    return fail(node, str(problem), hint="check the values of the columns that it reads")
