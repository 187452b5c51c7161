"""Expressions that know their types: what plan nodes hold and engines evaluate.

`bind.py` makes them. Every conversion stands in the tree as a `BoundCast`, so operands of a
comparison or of arithmetic have one type and no engine applies rules of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from millpond.plan.tree import Tree, topological
from millpond.plan.types import BOOLEAN, DataType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.plan.paths import Step


class BoundExpr(Tree):
    """A typed expression. Compare two with `==`: equal content is equal."""

    __slots__ = ()
    type: DataType

    def __str__(self) -> str:
        from millpond.plan.text import format_expr

        return format_expr(self)

    __repr__ = __str__


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundPath(BoundExpr):
    """A column or a place inside it; with `scope="element"`, a place inside the list element
    that the innermost quantifier looks at (no steps: the element itself)."""

    steps: tuple[Step, ...]
    type: DataType
    scope: Literal["row", "element"] = "row"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundLiteral(BoundExpr):
    """A constant of this type; `value` is None or a Python value of it.

    Timestamps are `datetime`s: aware in UTC, or naive for `timestamp_ntz`.
    """

    value: Any
    type: DataType


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundCall(BoundExpr):
    """A function of the table in `functions.py`, its arguments already of the right types."""

    function: str
    args: tuple[BoundExpr, ...]
    type: DataType

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
