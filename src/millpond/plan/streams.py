"""Nodes of streams and full SQL: ordered stateful functions, window functions, SQL texts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from millpond.base.errors import PlanError, TypeMismatchError
from millpond.plan.arguments import whole_of
from millpond.plan.bind import verify
from millpond.plan.node import Plan, Unary
from millpond.plan.sqltext import check_sql
from millpond.plan.types import BOOLEAN, LONG, DataType, Field, Struct, is_orderable

if TYPE_CHECKING:
    from millpond.plan.bound import BoundExpr, BoundSortKey
    from millpond.plan.python import StatefulDefinition

WINDOW_FUNCTIONS: Final = (
    *("row_number", "rank", "dense_rank", "lag", "lead", "first_value", "last_value"),
    *("count", "sum", "min", "max", "mean"),
)
_NUMBERING = ("row_number", "rank", "dense_rank")


@dataclass(frozen=True, slots=True)
class StatefulMapping:
    """One call: what it is called with, which rows may change its state, one state per key."""

    name: str
    function: StatefulDefinition
    args: tuple[BoundExpr, ...]
    type: DataType
    where: BoundExpr | None = None
    partition_by: tuple[BoundExpr, ...] = ()

    def __str__(self) -> str:
        text = f"{self.name} := {self.function.name}({', '.join(map(str, self.args))})"
        where = "" if self.where is None else f" filter {self.where}"
        keys = f" per {', '.join(map(str, self.partition_by))}" if self.partition_by else ""
        return text + where + keys


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StatefulFunction(Unary, Plan):
    """Columns added by functions that are called once a row, in order, and remember.

    A mapping sees the input's columns and those of the mappings before it.
    """

    input: Plan
    mappings: tuple[StatefulMapping, ...]

    def __post_init__(self) -> None:
        if not self.mappings:
            raise PlanError("a stateful step needs at least one function")
        schema = self.input.schema
        for mapping in self.mappings:
            for expr in (*mapping.args, *mapping.partition_by):
                verify(expr, schema)
            if mapping.where is not None:
                verify(mapping.where, schema)
                if mapping.where.type != BOOLEAN:
                    raise TypeMismatchError(f"a filter is boolean, not {mapping.where.type}")
            for key in mapping.partition_by:
                if not is_orderable(key.type):
                    raise TypeMismatchError(
                        f"{key!r} is a {key.type}, not a key", hint="use a part of it"
                    )
            found = mapping.function.return_type(tuple(arg.type for arg in mapping.args))
            if found != mapping.type:
                raise TypeMismatchError(
                    f"{mapping.function.name} gives {found}, not {mapping.type}"
                )
            schema = Struct((*schema.fields, Field(mapping.name, mapping.type)))
        self._set_schema(schema)

    def label(self) -> str:
        """The calls."""
        return ", ".join(map(str, self.mappings))


@dataclass(frozen=True, slots=True)
class WindowCall:
    """`function(args) over (partition by … order by … rows between start and end)`.

    The frame counts rows from the current one; None is unbounded. It applies to `first_value`,
    `last_value` and the aggregates; `lag` and `lead` look `offset` rows away.
    """

    name: str
    function: str
    type: DataType
    arg: BoundExpr | None = None
    partition_by: tuple[BoundExpr, ...] = ()
    order_by: tuple[BoundSortKey, ...] = ()
    start: int | None = None
    end: int | None = 0
    offset: int = 1

    def __post_init__(self) -> None:
        if self.function not in WINDOW_FUNCTIONS:
            raise PlanError(
                f"unknown window function {self.function!r}",
                hint=f"one of {', '.join(WINDOW_FUNCTIONS)}",
            )
        if self.arg is None and self.function not in (*_NUMBERING, "count"):
            raise PlanError(f"{self.function} needs an argument")
        if self.arg is not None and self.function in _NUMBERING:
            raise PlanError(f"{self.function} takes no argument")
        if whole_of(self.offset, "window(offset=...)") < 0:
            raise PlanError(f"an offset is not negative: {self.offset}", hint="use lag or lead")
        if self.start is not None and self.end is not None and self.start > self.end:
            raise PlanError(f"a window frame from {self.start} to {self.end} is empty")

    def __str__(self) -> str:
        by = f"partition by {', '.join(map(str, self.partition_by))} " if self.partition_by else ""
        order = f"order by {', '.join(map(str, self.order_by))}" if self.order_by else ""
        arg = "" if self.arg is None else str(self.arg)
        return f"{self.name} := {self.function}({arg}) over ({(by + order).strip()})"


def window_type(function: str, arg: DataType | None) -> DataType:
    """The type of a window function over values of a type."""
    from millpond.plan.aggregates import measure_type

    if function in _NUMBERING or function == "count":
        return LONG
    if arg is None:
        raise PlanError(f"{function} needs an argument")
    if function in ("lag", "lead", "first_value", "last_value"):
        return arg
    return measure_type(function, arg)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Window(Unary, Plan):
    """SQL window functions as added columns; rows keep their order.

    Rows that tie in a window's order are taken in the input's order.
    """

    input: Plan
    calls: tuple[WindowCall, ...]

    def __post_init__(self) -> None:
        if not self.calls:
            raise PlanError("a window step needs at least one function")
        given = self.input.schema
        for call in self.calls:
            for key in (*call.partition_by, *(key.expr for key in call.order_by)):
                if not is_orderable(key.type):
                    raise TypeMismatchError(
                        f"{key!r} is a {key.type}, not a key", hint="use a part of it"
                    )
            for expr in (call.arg, *call.partition_by, *(key.expr for key in call.order_by)):
                if expr is not None:
                    verify(expr, given)
            found = window_type(call.function, None if call.arg is None else call.arg.type)
            if found != call.type:
                raise TypeMismatchError(f"{call.function} gives {found}, not {call.type}")
        added = (Field(call.name, call.type) for call in self.calls)
        self._set_schema(Struct((*given.fields, *added)))

    def label(self) -> str:
        """The calls."""
        return ", ".join(map(str, self.calls))


SqlAllow: TypeAlias = Literal["inputs", "session"]
"""What a query may use: its inputs and functions that compute, or all that the session can do."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sql(Plan):
    """A query text over named plans: full Spark SQL where the nodes stop.

    The text's syntax is checked here, its names and types when Spark analyses it, and then also
    that it uses what it may. Row order is what the text's own ORDER BY says.
    """

    text: str
    names: tuple[str, ...]
    members: tuple[Plan, ...]
    columns: Struct
    allow: SqlAllow = "inputs"

    def __post_init__(self) -> None:
        if self.allow not in get_args(SqlAllow):
            raise PlanError(f"a query may use 'inputs' or 'session', not {self.allow!r}")
        if len(self.names) != len(self.members) or len(set(self.names)) != len(self.names):
            raise PlanError("each input of a query has one name of its own")
        for name in self.names:
            if not name or not name.isprintable():
                raise PlanError(f"{name!r} can't name an input", hint="use printable characters")
        check_sql(self.text)
        self._set_schema(self.columns)

    @property
    def children(self) -> tuple[Plan, ...]:
        """The inputs, in the order of their names."""
        return self.members

    def with_children(self, children: tuple[Plan, ...]) -> Sql:
        """The same text over other inputs."""
        return replace(self, members=children)

    def label(self) -> str:
        """The names and the text on one line."""
        return f"({', '.join(self.names)}) {' '.join(self.text.split())}"
