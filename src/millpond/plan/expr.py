"""Expressions as people write them: `(col("a") > 3) & path("tags").contains("p0")`.

They name columns but know no schema. A plan node binds them (`bind.py`), and from then on they are
typed `BoundExpr`s. What each function means stands in docs/expressions.md.

>>> print((col("a") > 3) & path("tags").contains("p0"))
((a > 3) and contains(tags, 'p0'))
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from millpond.base.errors import PlanError, TypeMismatchError
from millpond.base.unsaid import masked
from millpond.plan.arguments import text_of, type_of, wrong
from millpond.plan.paths import Name, Step, parse_path
from millpond.plan.tree import Tree

if TYPE_CHECKING:
    from millpond.plan.arguments import AnyType
    from millpond.plan.types import DataType

_PARTS = ("year", "month", "day", "hour", "minute", "second")


class Expr(Tree):
    """An expression without types: build it with `col`, `path`, `lit` and operators."""

    __slots__ = ()

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return call("eq", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return call("ne", self, other)

    __hash__ = object.__hash__

    def __lt__(self, other: object) -> Expr:
        return call("lt", self, other)

    def __le__(self, other: object) -> Expr:
        return call("le", self, other)

    def __gt__(self, other: object) -> Expr:
        return call("gt", self, other)

    def __ge__(self, other: object) -> Expr:
        return call("ge", self, other)

    def __and__(self, other: object) -> Expr:
        return _flat("and", self, other)

    def __rand__(self, other: object) -> Expr:
        return _flat("and", lit(other), self)

    def __or__(self, other: object) -> Expr:
        return _flat("or", self, other)

    def __ror__(self, other: object) -> Expr:
        return _flat("or", lit(other), self)

    def __invert__(self) -> Expr:
        return call("not", self)

    def __add__(self, other: object) -> Expr:
        return call("add", self, other)

    def __radd__(self, other: object) -> Expr:
        return call("add", other, self)

    def __sub__(self, other: object) -> Expr:
        return call("subtract", self, other)

    def __rsub__(self, other: object) -> Expr:
        return call("subtract", other, self)

    def __mul__(self, other: object) -> Expr:
        return call("multiply", self, other)

    def __rmul__(self, other: object) -> Expr:
        return call("multiply", other, self)

    def __truediv__(self, other: object) -> Expr:
        return call("divide", self, other)

    def __rtruediv__(self, other: object) -> Expr:
        return call("divide", other, self)

    def __floordiv__(self, other: object) -> NoReturn:
        raise TypeMismatchError(
            "// would round down, which no engine does",
            hint="use .div(...) for whole numbers, which truncates towards zero",
        )

    __rfloordiv__ = __floordiv__

    def __mod__(self, other: object) -> Expr:
        return call("remainder", self, other)

    def __rmod__(self, other: object) -> Expr:
        return call("remainder", other, self)

    def __neg__(self) -> Expr:
        return call("negate", self)

    def __abs__(self) -> Expr:
        return call("abs", self)

    def __bool__(self) -> NoReturn:
        raise TypeMismatchError(
            "an expression has no truth value of its own",
            hint="combine expressions with & | ~, not with and, or, not; put each in parentheses",
        )

    def __iter__(self) -> NoReturn:
        raise TypeMismatchError("an expression can't be iterated")

    def __contains__(self, item: object) -> NoReturn:
        raise TypeMismatchError(
            "`in` does not build an expression", hint="use .isin([...]) or .contains(...)"
        )

    def same_as(self, other: object) -> Expr:
        """Equality that treats two nulls as equal and never gives null."""
        return call("eq_null_safe", self, other)

    def div(self, other: object) -> Expr:
        """Whole division of whole numbers, truncated towards zero."""
        return call("int_divide", self, other)

    def is_null(self) -> Expr:
        """Whether the value is missing."""
        return call("is_null", self)

    def is_not_null(self) -> Expr:
        """Whether the value is there."""
        return call("is_not_null", self)

    def is_nan(self) -> Expr:
        """Whether a floating point value is NaN; false for null."""
        return call("is_nan", self)

    def isin(self, values: Iterable[object]) -> Expr:
        """Whether the value is one of these literals; of none at all: false, for null too."""
        if isinstance(values, str | bytes | Expr) or not isinstance(values, Iterable):
            raise wrong("isin()", "a list of values", values, hint="isin([1, 2])")
        return call("in", self, *values)

    def between(self, low: object, high: object) -> Expr:
        """Whether the value lies within both bounds, which count."""
        return (self >= low) & (self <= high)

    def coalesce(self, *others: object) -> Expr:
        """The first of these that is not null."""
        return call("coalesce", self, *others)

    def cast(self, to: AnyType, *, on_error: Literal["error", "null"] = "error") -> Expr:
        """The value as another type, or a type's name; what does not fit is an error, or null."""
        _check_choice("cast(on_error=...)", on_error, ("error", "null"))
        return CastExpr(self, type_of(to, "cast()"), on_error)

    def parse_json(self, to: AnyType) -> Expr:
        """JSON text as a struct, list or map of this type; members that do not fit are null."""
        return ParseJsonExpr(self, type_of(to, "parse_json()"))

    def any(self, predicate: Expr | None = None) -> Expr:
        """Whether some element of this list satisfies the predicate over the element."""
        return QuantifierExpr("any", self, element() if predicate is None else lit(predicate))

    def all(self, predicate: Expr | None = None) -> Expr:
        """Whether every element of this list satisfies the predicate over the element."""
        return QuantifierExpr("all", self, element() if predicate is None else lit(predicate))

    def contains(self, item: object) -> Expr:
        """Whether a string holds this text, or a list this element."""
        return call("contains", self, item)

    def len(self) -> Expr:
        """The number of characters of a string or of elements of a list."""
        return call("length", self)

    def lower(self) -> Expr:
        """The string in lower case."""
        return call("lower", self)

    def upper(self) -> Expr:
        """The string in upper case."""
        return call("upper", self)

    def trim(self) -> Expr:
        """The string without spaces at both ends."""
        return call("trim", self)

    def starts_with(self, prefix: object) -> Expr:
        """Whether the string begins with this text."""
        return call("starts_with", self, prefix)

    def ends_with(self, suffix: object) -> Expr:
        """Whether the string ends with this text."""
        return call("ends_with", self, suffix)

    def like(self, pattern: str) -> Expr:
        r"""SQL LIKE: `%` any text, `_` one character, `\` escapes."""
        return call("like", self, pattern)

    def replace_text(self, old: str, new: str) -> Expr:
        """The string with every occurrence of one text exchanged for another."""
        return call("replace", self, old, new)

    def substr(self, start: int, length: int) -> Expr:
        """`length` characters from `start`, which counts from 0."""
        return call("substring", self, start, length)

    def concat(self, *others: object) -> Expr:
        """Strings joined; null when one of them is."""
        return call("concat", self, *others)

    def date_part(self, part: Literal["year", "month", "day", "hour", "minute", "second"]) -> Expr:
        """One part of a date or timestamp as a number."""
        _check_choice("date_part()", part, _PARTS)
        return call(part, self)

    def date_trunc(
        self,
        unit: Literal["year", "quarter", "month", "week", "day", "hour", "minute", "second"],
    ) -> Expr:
        """The start of the unit that a timestamp lies in; weeks start on Monday."""
        return call("date_trunc", self, unit)

    def time_bucket(self, width: dt.timedelta) -> Expr:
        """The start of the bucket that a timestamp lies in; buckets are counted from the epoch."""
        return call("time_bucket", self, _micros(width))

    def epoch_micros(self) -> Expr:
        """A timestamp as microseconds since the epoch."""
        return call("epoch_micros", self)

    def asc(self, *, nulls: Literal["last", "first"] = "last") -> SortKey:
        """A sort key, small values first."""
        _check_choice("asc(nulls=...)", nulls, ("last", "first"))
        return SortKey(self, descending=False, nulls_first=nulls == "first")

    def desc(self, *, nulls: Literal["last", "first"] = "last") -> SortKey:
        """A sort key, large values first."""
        _check_choice("desc(nulls=...)", nulls, ("last", "first"))
        return SortKey(self, descending=True, nulls_first=nulls == "first")

    def alias(self, name: str) -> Named:
        """The expression with the name of the column it becomes."""
        return Named(name, self)

    def __str__(self) -> str:
        from millpond.plan.text import format_expr

        return str(masked(format_expr(self)))

    def __repr__(self) -> str:
        from millpond.plan.text import format_expr

        return str(masked(format_expr(self, limit=200)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PathExpr(Expr):
    """A column, or a place inside it. Inside `any` and `all`, a place inside the element."""

    steps: tuple[Step, ...]
    optional: bool = False

    def or_null(self) -> PathExpr:
        """The same path, null where the schema has no such place instead of an error."""
        return replace(self, optional=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LiteralExpr(Expr):
    """A constant; its type follows from the Python value unless it is given."""

    value: Any
    type: DataType | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CallExpr(Expr):
    """A function of the table in `functions.py`."""

    function: str
    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        """The arguments."""
        return self.args

    def with_children(self, children: tuple[Expr, ...]) -> CallExpr:
        """The same function of other arguments."""
        return CallExpr(self.function, children)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CastExpr(Expr):
    """A value as another type."""

    arg: Expr
    to: DataType
    on_error: Literal["error", "null"] = "error"

    @property
    def children(self) -> tuple[Expr, ...]:
        """The value."""
        return (self.arg,)

    def with_children(self, children: tuple[Expr, ...]) -> CastExpr:
        """Another value as the same type."""
        return replace(self, arg=children[0])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ParseJsonExpr(Expr):
    """JSON text read as a type."""

    arg: Expr
    to: DataType

    @property
    def children(self) -> tuple[Expr, ...]:
        """The text."""
        return (self.arg,)

    def with_children(self, children: tuple[Expr, ...]) -> ParseJsonExpr:
        """Another text, the same type."""
        return replace(self, arg=children[0])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QuantifierExpr(Expr):
    """`any` or `all` over the elements of a list. The predicate sees the element alone."""

    kind: Literal["any", "all"]
    list: Expr
    predicate: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        """The list and the predicate."""
        return (self.list, self.predicate)

    def with_children(self, children: tuple[Expr, ...]) -> QuantifierExpr:
        """The same quantifier over another list or with another predicate."""
        return QuantifierExpr(self.kind, *children)


@dataclass(frozen=True, slots=True, eq=False)
class SortKey:
    """An expression to sort by, its direction, and where nulls go."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """An expression and the name of the column it becomes."""

    name: str
    expr: Expr


def col(name: str) -> PathExpr:
    """A column by its exact name, dots and all."""
    return PathExpr((Name(text_of(name, "col()", "a column's name")),))


def path(text: str) -> PathExpr:
    """A column or a place inside it, by path text (see `paths.py`)."""
    return PathExpr(parse_path(text_of(text, "path()", "a path's text")))


def element() -> PathExpr:
    """Inside `any` and `all`: the element itself."""
    return PathExpr(())


def lit(value: object, type_: AnyType | None = None) -> Expr:
    """A constant. An expression is returned as it is."""
    if isinstance(value, Expr):
        return value
    if hasattr(value, "item") and type(value).__module__.split(".")[0] == "numpy":
        value = _from_numpy(value)
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        raise TypeMismatchError(f"{value} is not a decimal number")
    return LiteralExpr(value, None if type_ is None else type_of(type_, "lit()"))


def _from_numpy(value: Any) -> Any:
    """A Python value for a NumPy scalar; its nanoseconds would silently become a number."""
    if getattr(value, "ndim", 0):
        raise TypeMismatchError("an array can't be a literal", hint="use isin([...])")
    item = value.item()
    if type(value).__name__ == "datetime64" and isinstance(item, int):
        exact = value.astype("datetime64[us]")
        if exact != value:
            raise TypeMismatchError(f"{value} can't be a literal", hint="use whole microseconds")
        return exact.item()
    return item


def call(function: str, *args: object) -> Expr:
    """A call by name; arguments that are not expressions become literals."""
    return CallExpr(function, tuple(lit(arg) for arg in args))


def if_else(condition: Expr, then: object, otherwise: object) -> Expr:
    """One of two values; a null condition counts as false."""
    return call("if_else", condition, then, otherwise)


def from_epoch_micros(value: object) -> Expr:
    """Microseconds since the epoch as a timestamp."""
    return call("from_epoch_micros", value)


def _micros(width: object) -> int:
    if not isinstance(width, dt.timedelta):
        hint = "datetime.timedelta(minutes=5)"
        raise wrong("time_bucket()", "a timedelta", width, hint=hint)
    return width // dt.timedelta(microseconds=1)


def _check_choice(argument: str, given: object, choices: tuple[str, ...]) -> None:
    if given not in choices:
        raise PlanError(f"{argument} does not know {given!r}", hint=f"one of {', '.join(choices)}")


def _flat(function: str, left: Expr, right: object) -> Expr:
    args: list[Expr] = []
    for side in (left, lit(right)):
        same = isinstance(side, CallExpr) and side.function == function
        args.extend(side.children if same else (side,))
    return CallExpr(function, tuple(args))
