"""Expressions that know their types: what plan nodes hold and engines evaluate.

`bind.py` makes them. Every conversion stands in the tree as a `BoundCast`, so operands of a
comparison or of arithmetic have one type and no engine applies rules of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from millpond.base.errors import PlanError, TypeMismatchError
from millpond.base.unsaid import masked
from millpond.plan.casts import can_cast
from millpond.plan.functions import function_named
from millpond.plan.scalars import require_value
from millpond.plan.tree import Tree, topological
from millpond.plan.types import BOOLEAN, STRING, DataType, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.plan.functions import Function
    from millpond.plan.paths import Step


class BoundExpr(Tree):
    """A typed expression. Compare two with `==`: equal content is equal."""

    __slots__ = ()
    type: DataType

    def __str__(self) -> str:
        from millpond.plan.text import format_expr

        return str(masked(format_expr(self)))

    def __repr__(self) -> str:
        from millpond.plan.text import format_expr

        return str(masked(format_expr(self, limit=200)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundPath(BoundExpr):
    """A column or a place inside it; with `scope="element"`, a place inside the list element
    that the innermost quantifier looks at (no steps: the element itself)."""

    steps: tuple[Step, ...]
    type: DataType
    scope: Literal["row", "element"] = "row"

    def __post_init__(self) -> None:
        if self.scope not in ("row", "element") or (self.scope == "row" and not self.steps):
            raise PlanError(f"a path can't begin like this: scope {self.scope!r}, {self.steps}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundLiteral(BoundExpr):
    """A constant of this type; `value` is None or a Python value of it.

    Timestamps are `datetime`s: aware in UTC, or naive for `timestamp_ntz`.
    """

    value: Any
    type: DataType

    def __post_init__(self) -> None:
        require_value(self.value, self.type)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundCall(BoundExpr):
    """A function of the table in `functions.py`, its arguments already of the right types."""

    function: str
    args: tuple[BoundExpr, ...]
    type: DataType

    def __post_init__(self) -> None:
        function = function_named(self.function)
        function.check_arity(self.function, len(self.args))
        given = tuple(arg.type for arg in self.args)
        wanted, result = function.rule(self.function, given)
        if wanted != given or result != self.type:
            raise TypeMismatchError(
                f"{self.function} of ({', '.join(map(str, given))}) is not a {self.type}"
            )
        _check_literals(self, function)

    @property
    def children(self) -> tuple[BoundExpr, ...]:
        """The arguments."""
        return self.args

    def with_children(self, children: tuple[BoundExpr, ...]) -> BoundCall:
        """The same function of other arguments."""
        return replace(self, args=children)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundCast(BoundExpr):
    """A value as another type; what does not fit is an error, or null."""

    arg: BoundExpr
    type: DataType
    on_error: Literal["error", "null"] = "error"

    def __post_init__(self) -> None:
        if not can_cast(self.arg.type, self.type):
            raise TypeMismatchError(f"{self.arg.type} can't be cast to {self.type}")
        if self.on_error not in ("error", "null"):
            raise PlanError(f"a cast's on_error is 'error' or 'null', not {self.on_error!r}")

    @property
    def children(self) -> tuple[BoundExpr, ...]:
        """The value."""
        return (self.arg,)

    def with_children(self, children: tuple[BoundExpr, ...]) -> BoundCast:
        """Another value as the same type."""
        return replace(self, arg=children[0])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundParseJson(BoundExpr):
    """JSON text read as a type."""

    arg: BoundExpr
    type: DataType

    def __post_init__(self) -> None:
        if self.arg.type != STRING:
            raise TypeMismatchError(f"parse_json reads strings, not {self.arg.type}")
        if not isinstance(self.type, Struct | List | Map):
            raise TypeMismatchError(
                f"parse_json gives structs, lists and maps, not {self.type}",
                hint="cast the text, or parse it into a struct and take a member",
            )

    @property
    def children(self) -> tuple[BoundExpr, ...]:
        """The text."""
        return (self.arg,)

    def with_children(self, children: tuple[BoundExpr, ...]) -> BoundParseJson:
        """Another text, the same type."""
        return replace(self, arg=children[0])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundQuantifier(BoundExpr):
    """`any` or `all`: three-valued, false (true) over an empty list, null over a null one."""

    kind: Literal["any", "all"]
    list: BoundExpr
    predicate: BoundExpr
    type: DataType = BOOLEAN

    def __post_init__(self) -> None:
        if self.kind not in ("any", "all") or self.type != BOOLEAN:
            raise PlanError(f"unknown quantifier {self.kind!r} of type {self.type}")
        if not isinstance(self.list.type, List):
            raise TypeMismatchError(
                f"any and all look into lists; {self.list!r} is a {self.list.type}"
            )
        if self.predicate.type != BOOLEAN:
            raise TypeMismatchError(
                f"{self.kind} takes a boolean predicate, not {self.predicate.type}"
            )

    @property
    def children(self) -> tuple[BoundExpr, ...]:
        """The list and the predicate."""
        return (self.list, self.predicate)

    def with_children(self, children: tuple[BoundExpr, ...]) -> BoundQuantifier:
        """The same quantifier over another list or with another predicate."""
        return replace(self, list=children[0], predicate=children[1])


@dataclass(frozen=True, slots=True)
class BoundSortKey:
    """An expression to sort by, its direction, and where nulls go. NaN is the largest number."""

    expr: BoundExpr
    descending: bool = False
    nulls_first: bool = False

    def __str__(self) -> str:
        order = " desc" if self.descending else ""
        return f"{self.expr}{order}{' nulls first' if self.nulls_first else ''}"


@dataclass(frozen=True, slots=True)
class BoundNamed:
    """An expression and the name of the column it becomes."""

    name: str
    expr: BoundExpr

    def __str__(self) -> str:
        text = str(self.expr)
        return text if text in (self.name, f'"{self.name}"') else f"{self.name} := {text}"


def row_paths(expr: BoundExpr) -> Iterator[BoundPath]:
    """The paths of an expression that start at the row."""
    for node in topological(expr):
        if isinstance(node, BoundPath) and node.scope == "row":
            yield node


def conjuncts(predicate: BoundExpr) -> tuple[BoundExpr, ...]:
    """The parts of a predicate that all must hold."""
    parts: list[BoundExpr] = []
    stack = [predicate]
    while stack:
        part = stack.pop()
        if isinstance(part, BoundCall) and part.function == "and":
            stack.extend(reversed(part.args))
        else:
            parts.append(part)
    return tuple(parts)


def conjoin(parts: tuple[BoundExpr, ...]) -> BoundExpr:
    """One predicate that holds when all of these do."""
    if not parts:
        return BoundLiteral(True, BOOLEAN)
    return parts[0] if len(parts) == 1 else BoundCall("and", parts, BOOLEAN)


_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def _check_literals(call: BoundCall, function: Function) -> None:
    """Refuse arguments that have to be literals and are not, and literals that make no sense."""
    name, args = call.function, call.args
    if name == "in" and not all(isinstance(arg, BoundLiteral) for arg in args[1:]):
        raise PlanError("isin takes literals", hint="compare columns with == and combine with |")
    values = {}
    for index in function.literal_args:
        arg = args[index]
        if not isinstance(arg, BoundLiteral) or arg.value is None:
            raise PlanError(f"argument {index + 1} of {name} has to be a literal, not {arg!r}")
        values[index] = arg.value
    if name == "date_trunc" and values[1] not in _UNITS:
        raise PlanError(
            f"date_trunc knows no unit {values[1]!r}", hint=f"one of {', '.join(_UNITS)}"
        )
    if name == "time_bucket" and values[1] <= 0:
        raise PlanError("a time bucket is at least one microsecond wide")
    if name == "substring" and min(values.values()) < 0:
        raise PlanError("a substring starts at 0 or later and is not shorter than 0")
    if name == "replace" and values[1] == "":
        raise PlanError("replace needs a text to look for")
