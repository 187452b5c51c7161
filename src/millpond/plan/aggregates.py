"""Measures of an aggregation: `agg.sum("x")`, `agg.count()`. Typed when a node binds them.

>>> from millpond.plan import aggregates as agg
>>> agg.sum("x")
Measure(function='sum', arg=x, where=None)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from millpond.base.errors import PlanError, TypeMismatchError
from millpond.plan.bind import as_bound, bind_predicate, cast_to
from millpond.plan.expr import Expr, col
from millpond.plan.types import (
    BOOLEAN,
    DOUBLE,
    LONG,
    DataType,
    Decimal,
    Struct,
    is_integral,
    is_numeric,
    is_orderable,
)

if TYPE_CHECKING:
    from millpond.plan.bound import BoundExpr

MEASURES: Final = ("count", "count_distinct", "sum", "min", "max", "mean", "first", "last")


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """An aggregate function and what it looks at; `where` limits it to some rows."""

    function: str
    arg: Expr | None = None
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class BoundMeasure:
    """A measure with types and the name of the column it becomes."""

    name: str
    function: str
    arg: BoundExpr | None
    type: DataType
    where: BoundExpr | None = None

    def __post_init__(self) -> None:
        _check_function(self.function)
        if self.arg is None and self.function != "count":
            raise PlanError(f"{self.function} needs an argument")
        found = LONG if self.arg is None else measure_type(self.function, self.arg.type)
        if found != self.type:
            raise TypeMismatchError(f"{self.function} gives {found}, not {self.type}")
        if self.where is not None and self.where.type != BOOLEAN:
            raise TypeMismatchError(f"a measure's filter is boolean, not {self.where.type}")

    def __str__(self) -> str:
        where = "" if self.where is None else f" where {self.where}"
        return f"{self.name} := {self.function}({'' if self.arg is None else self.arg}{where})"


def _measure(function: str, arg: Expr | str | None, where: Expr | None) -> Measure:
    return Measure(function, col(arg) if isinstance(arg, str) else arg, where)


def count(arg: Expr | str | None = None, *, where: Expr | None = None) -> Measure:
    """The number of rows, or of values that are not null."""
    return _measure("count", arg, where)


def count_distinct(arg: Expr | str, *, where: Expr | None = None) -> Measure:
    """The number of different values that are not null."""
    return _measure("count_distinct", arg, where)


def sum(arg: Expr | str, *, where: Expr | None = None) -> Measure:  # noqa: A001
    """The sum: whole numbers as long, an overflow is an error; null over no values."""
    return _measure("sum", arg, where)


def min(arg: Expr | str, *, where: Expr | None = None) -> Measure:  # noqa: A001
    """The smallest value that is not null."""
    return _measure("min", arg, where)


def max(arg: Expr | str, *, where: Expr | None = None) -> Measure:  # noqa: A001
    """The largest value that is not null; NaN is the largest of all."""
    return _measure("max", arg, where)


def mean(arg: Expr | str, *, where: Expr | None = None) -> Measure:
    """The average as a double; null over no values."""
    return _measure("mean", arg, where)


def first(arg: Expr | str, *, where: Expr | None = None) -> Measure:
    """The value of the group's first row, null or not."""
    return _measure("first", arg, where)


def last(arg: Expr | str, *, where: Expr | None = None) -> Measure:
    """The value of the group's last row, null or not."""
    return _measure("last", arg, where)


def bind_measure(name: str, measure: Measure, schema: Struct) -> BoundMeasure:
    """A measure over rows of this schema."""
    where = None if measure.where is None else bind_predicate(measure.where, schema)
    if measure.arg is None:
        return BoundMeasure(name, measure.function, None, LONG, where)
    arg = as_bound(measure.arg, schema)
    if measure.function == "mean" and is_numeric(arg.type):
        arg = cast_to(arg, DOUBLE)
    return BoundMeasure(
        name, measure.function, arg, measure_type(measure.function, arg.type), where
    )


def _check_function(function: str) -> None:
    if function not in MEASURES:
        raise PlanError(f"unknown measure {function!r}", hint=f"one of {', '.join(MEASURES)}")


def measure_type(function: str, arg: DataType) -> DataType:
    """The type of a measure over values of a type."""
    _check_function(function)
    if function in ("count", "count_distinct"):
        if function == "count_distinct" and not is_orderable(arg):
            raise TypeMismatchError(f"count_distinct takes scalar values, not {arg}")
        return LONG
    if function in ("first", "last"):
        return arg
    if function in ("min", "max"):
        if not is_orderable(arg):
            raise TypeMismatchError(f"{function} takes values that have an order, not {arg}")
        return arg
    if not is_numeric(arg):
        raise TypeMismatchError(f"{function} takes numbers, not {arg}")
    if function == "mean":
        return DOUBLE
    if isinstance(arg, Decimal):
        precision = arg.precision + 10
        return Decimal(38 if precision > 38 else precision, arg.scale)
    return LONG if is_integral(arg) else DOUBLE
