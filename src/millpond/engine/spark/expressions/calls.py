"""The functions of the table in `plan/functions.py`, each as native Spark expressions.

Arguments have the types that the table says. Spark's result type is the table's too, or is cast.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import EvaluationError
from millpond.engine.spark.api import balanced
from millpond.engine.spark.expressions.literals import literal, long
from millpond.engine.spark.types import to_cast
from millpond.plan import types as t
from millpond.plan.bound import BoundCall, BoundCast, BoundExpr, BoundLiteral

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from pyspark.sql import Column

    from millpond.engine.spark.api import Api

    _Compile: TypeAlias = Callable[[BoundCall, list[Column], Api], Column]

_INT_MAX = (1 << 31) - 1
_PATTERN = re.compile(r"(?:[^\\]|\\[%_\\])*", re.DOTALL)


def call(node: BoundCall, args: list[Column], api: Api) -> Column:
    """The function of these arguments."""
    return _CALLS[node.function](node, args, api)


def _binary(operate: Callable[[Any, Any], Any]) -> _Compile:
    def compiled(node: BoundCall, args: list[Column], api: Api) -> Column:
        del node, api
        made: Column = operate(args[0], args[1])
        return made

    return compiled


def _compare(operate: Callable[[Any, Any], Any]) -> _Compile:
    def compiled(node: BoundCall, args: list[Column], api: Api) -> Column:
        if node.args[0].type == t.NULL:  # Spark has no order for values that can only be null
            same = True if node.function == "eq_null_safe" else None
            return literal(same, t.BOOLEAN, api)
        made: Column = operate(args[0], args[1])
        return made

    return compiled


def _function(name: str) -> _Compile:
    def compiled(node: BoundCall, args: list[Column], api: Api) -> Column:
        del node
        made: Column = getattr(api.functions, name)(*args)
        return made

    return compiled


def _tree(operate: Callable[[Any, Any], Any]) -> _Compile:
    return lambda node, args, api: balanced(args, operate)  # noqa: ARG005


def _in(node: BoundCall, args: list[Column], api: Api) -> Column:
    value, rest = args[0], args[1:]
    if node.args[0].type == t.NULL:
        return literal(None if rest else False, t.BOOLEAN, api)
    if t.is_fractional(node.args[0].type):
        # Spark looks long lists up by bits, and -0.0 has others than 0.0.
        zeros = [item for item, arg in zip(rest, node.args[1:], strict=True) if _is_zero(arg)]
        if zeros:
            others = [item for item in rest if not any(item is zero for zero in zeros)]
            return (value == zeros[0]) | value.isin(*others) if others else value == zeros[0]
    return value.isin(*rest)


def _is_zero(expr: BoundExpr) -> bool:
    while isinstance(expr, BoundCast):
        expr = expr.arg
    return isinstance(expr, BoundLiteral) and expr.value is not None and expr.value == 0


def _if_else(node: BoundCall, args: list[Column], api: Api) -> Column:
    del node
    made: Column = api.functions.when(args[0], args[1]).otherwise(args[2])
    return made


def _exact(operate: Callable[[Any, Any], Any]) -> _Compile:
    def compiled(node: BoundCall, args: list[Column], api: Api) -> Column:
        del api
        made: Column = operate(args[0], args[1])
        return made.cast(to_cast(node.type)) if isinstance(node.type, t.Decimal) else made

    return compiled


def _int_divide(node: BoundCall, args: list[Column], api: Api) -> Column:
    del node
    made: Column = api.functions.call_function("div", args[0], args[1])
    return made


def _text(name: str) -> _Compile:
    def compiled(node: BoundCall, args: list[Column], api: Api) -> Column:
        del node, api
        made: Column = getattr(args[0], name)(args[1])
        return made

    return compiled


def _like(node: BoundCall, args: list[Column], api: Api) -> Column:
    pattern = _literal_value(node.args[1])
    if not _PATTERN.fullmatch(pattern):
        raise EvaluationError(
            f"the pattern {pattern!r} can't be read",
            engine="spark",
            hint=r"an escape stands before %, _ or \ only: write \\ for a backslash",
        )
    made: Column = api.functions.like(*args)
    return made


def _substring(node: BoundCall, args: list[Column], api: Api) -> Column:
    start, length = (_literal_value(arg) for arg in node.args[1:])
    f = api.functions
    if start >= _INT_MAX:
        start, length = 0, 0
    made: Column = f.substring(args[0], start + 1, min(length, _INT_MAX))
    return made


def _length(node: BoundCall, args: list[Column], api: Api) -> Column:
    f = api.functions
    made: Column = (
        f.char_length(args[0]) if node.args[0].type == t.STRING else f.array_size(args[0])
    )
    return made


def _date_trunc(node: BoundCall, args: list[Column], api: Api) -> Column:
    made: Column = api.functions.date_trunc(_literal_value(node.args[1]), args[0])
    return made.cast(to_cast(node.type)) if node.type == t.TIMESTAMP_NTZ else made


def _time_bucket(node: BoundCall, args: list[Column], api: Api) -> Column:
    f = api.functions
    moment = _micros(node.args[0].type, args[0], api)
    width = long(_literal_value(node.args[1]), api)
    made: Column = f.timestamp_micros(moment - f.pmod(moment, width))
    return made.cast(to_cast(node.type)) if node.type == t.TIMESTAMP_NTZ else made


def _epoch_micros(node: BoundCall, args: list[Column], api: Api) -> Column:
    return _micros(node.args[0].type, args[0], api)


def _micros(type_: t.DataType, column: Column, api: Api) -> Column:
    if type_ == t.TIMESTAMP_NTZ:
        column = column.cast(to_cast(t.TIMESTAMP))
    made: Column = api.functions.unix_micros(column)
    return made


def _literal_value(expr: BoundExpr) -> Any:
    while isinstance(expr, BoundCast):
        expr = expr.arg
    assert isinstance(expr, BoundLiteral)
    return expr.value


_CALLS: Final[Mapping[str, _Compile]] = {
    **{name: _compare(getattr(operator, name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "eq_null_safe": _compare(lambda a, b: a.eqNullSafe(b)),
    "in": _in,
    "and": _tree(operator.and_),
    "or": _tree(operator.or_),
    "not": lambda node, args, api: ~args[0],  # noqa: ARG005
    "is_null": lambda node, args, api: args[0].isNull(),  # noqa: ARG005
    "is_not_null": lambda node, args, api: args[0].isNotNull(),  # noqa: ARG005
    "is_nan": _function("isnan"),
    "coalesce": _function("coalesce"),
    "if_else": _if_else,
    "add": _exact(operator.add),
    "subtract": _exact(operator.sub),
    "multiply": _exact(operator.mul),
    "divide": _binary(operator.truediv),
    "int_divide": _int_divide,
    "remainder": _binary(operator.mod),
    "negate": _function("negate"),
    "abs": _function("abs"),
    **{name: _function(name) for name in ("lower", "upper", "trim", "concat", "replace")},
    "like": _like,
    "contains": _text("contains"),
    "starts_with": _text("startswith"),
    "ends_with": _text("endswith"),
    "substring": _substring,
    "length": _length,
    **{name: _function(name) for name in ("year", "month", "day", "hour", "minute", "second")},
    "date_trunc": _date_trunc,
    "time_bucket": _time_bucket,
    "epoch_micros": _epoch_micros,
    "from_epoch_micros": _function("timestamp_micros"),
}
FUNCTIONS: Final = frozenset(_CALLS)
