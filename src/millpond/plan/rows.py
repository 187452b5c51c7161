"""Nodes that keep, change, unite, join and summarise rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from millpond.base.errors import PlanError, SchemaError, TypeMismatchError
from millpond.plan.arguments import wrong
from millpond.plan.bind import verify
from millpond.plan.node import Plan, Unary
from millpond.plan.types import BOOLEAN, STRING, Field, Struct, is_orderable

if TYPE_CHECKING:
    from millpond.plan.aggregates import BoundMeasure
    from millpond.plan.bound import BoundExpr, BoundNamed
    from millpond.plan.python import RowFilter

JoinKind: TypeAlias = Literal["inner", "left", "full", "semi", "anti"]
JOIN_KINDS: tuple[JoinKind, ...] = ("inner", "left", "full", "semi", "anti")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Filter(Unary, Plan):
    """The rows for which the predicate is true; neither false nor null ones."""

    input: Plan
    predicate: BoundExpr

    def __post_init__(self) -> None:
        verify(self.predicate, self.input.schema)
        if self.predicate.type != BOOLEAN:
            raise TypeMismatchError(f"a predicate is boolean, not {self.predicate.type}")
        self._set_schema(self.input.schema)

    def label(self) -> str:
        """The predicate."""
        return str(self.predicate)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FilterOrdered(Unary, Plan):
    """The rows that a stateful row filter keeps; it sees all rows, in order."""

    input: Plan
    row_filter: RowFilter

    def __post_init__(self) -> None:
        for name in self.row_filter.columns:
            self.input.schema.field(name)
        self._set_schema(self.input.schema)

    def label(self) -> str:
        """The filter's name and what it looks at."""
        return f"{self.row_filter.name}({', '.join(self.row_filter.columns)})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Project(Unary, Plan):
    """Each row's columns computed anew."""

    input: Plan
    columns: tuple[BoundNamed, ...]

    def __post_init__(self) -> None:
        fields = []
        for column in self.columns:
            verify(column.expr, self.input.schema)
            fields.append(Field(column.name, column.expr.type))
        self._set_schema(Struct(tuple(fields)))

    def label(self) -> str:
        """The columns."""
        return ", ".join(map(str, self.columns))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ParseJson(Unary, Plan):
    """A column of JSON text read into a struct, as one more column.

    Null text gives null. Members that are missing or of another type are null; text that is not a
    JSON object gives a struct of nulls.
    """

    input: Plan
    column: str
    parsed: Struct
    output: str

    def __post_init__(self) -> None:
        given = self.input.schema
        if given.field(self.column).type != STRING:
            raise TypeMismatchError(
                f"{self.column!r} is not text but {given.field(self.column).type}"
            )
        self._set_schema(Struct((*given.fields, Field(self.output, self.parsed))))

    def label(self) -> str:
        """The column and what it is read as."""
        return f"{self.output} := parse_json({self.column} as {self.parsed})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Union(Plan):
    """All rows of the first input, then all of the second, and so on. Columns agree exactly."""

    members: tuple[Plan, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise PlanError("a union needs at least one input", hint="use values([], schema=...)")
        first = self.members[0].schema
        for number, member in enumerate(self.members[1:], start=2):
            _check_same_columns(first, member.schema, number)
        fields = zip(*(member.schema.fields for member in self.members), strict=True)
        self._set_schema(
            Struct(tuple(replace(col[0], nullable=any(f.nullable for f in col)) for col in fields))
        )

    @property
    def children(self) -> tuple[Plan, ...]:
        """The inputs."""
        return self.members

    def with_children(self, children: tuple[Plan, ...]) -> Union:
        """A union of other inputs."""
        return Union(children)


def _check_same_columns(first: Struct, other: Struct, number: int) -> None:
    if first == other:
        return
    hint = "select the same columns in the same order, with casts where types differ"
    for at, (a, b) in enumerate(zip(first, other, strict=False), start=1):
        if (a.name, a.type) != (b.name, b.type):
            raise SchemaError(
                f"column {at} of a union is {a.name!r}: {a.type} in the first input, "
                f"{b.name!r}: {b.type} in input {number}",
                hint=hint,
            )
    if len(first) != len(other):
        raise SchemaError(
            f"input {number} of a union has {len(other)} columns, the first has {len(first)}",
            hint=hint,
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Join(Plan):
    """Pairs of rows whose keys are equal: in the left side's order, then the right side's.

    `full` gives the right rows without a partner last. A null key finds no partner unless
    `nulls_equal`. Columns are the left's, then the right's; `semi` and `anti` give the left's.
    """

    left: Plan
    right: Plan
    how: JoinKind
    keys: tuple[tuple[BoundExpr, BoundExpr], ...]
    nulls_equal: bool = False

    def __post_init__(self) -> None:
        if self.how not in JOIN_KINDS:
            raise PlanError(f"unknown join {self.how!r}", hint=f"one of {', '.join(JOIN_KINDS)}")
        if not self.keys:
            raise PlanError("a join needs at least one key")
        if not isinstance(self.nulls_equal, bool):
            raise wrong("join(nulls_equal=...)", "True or False", self.nulls_equal)
        for left, right in self.keys:
            verify(left, self.left.schema)
            verify(right, self.right.schema)
            if left.type != right.type or not is_orderable(left.type):
                raise TypeMismatchError(
                    "the two sides of a join's key are of one scalar type; "
                    f"{left!r} is a {left.type}, {right!r} is a {right.type}"
                )
        if self.how in ("semi", "anti"):
            self._set_schema(self.left.schema)
            return
        left_fields: tuple[Field, ...] = self.left.schema.fields
        right_fields: tuple[Field, ...] = self.right.schema.fields
        if self.how == "full":
            left_fields = tuple(replace(f, nullable=True) for f in left_fields)
        if self.how != "inner":
            right_fields = tuple(replace(f, nullable=True) for f in right_fields)
        for field in right_fields:
            if field.name in self.left.schema:
                raise SchemaError(
                    f"both sides of the join have a column {field.name!r}",
                    hint="join by its name, rename or drop it on one side, or give suffix='_right'",
                )
        self._set_schema(Struct((*left_fields, *right_fields)))

    @property
    def children(self) -> tuple[Plan, ...]:
        """Left and right."""
        return (self.left, self.right)

    def with_children(self, children: tuple[Plan, ...]) -> Join:
        """The same join of other sides."""
        return replace(self, left=children[0], right=children[1])

    def label(self) -> str:
        """The kind and the keys."""
        sign = "<=>" if self.nulls_equal else "="
        return f"{self.how} on {' and '.join(f'{a} {sign} {b}' for a, b in self.keys)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Aggregate(Unary, Plan):
    """One row a group, groups in the order of their keys, nulls last. No keys: one row in all."""

    input: Plan
    keys: tuple[BoundNamed, ...]
    measures: tuple[BoundMeasure, ...]

    def __post_init__(self) -> None:
        given = self.input.schema
        for key in self.keys:
            verify(key.expr, given)
            if not is_orderable(key.expr.type):
                raise TypeMismatchError(f"rows can't be grouped by {key.expr!r}, a {key.expr.type}")
        for measure in self.measures:
            for expr in (measure.arg, measure.where):
                if expr is not None:
                    verify(expr, given)
        if not self.keys and not self.measures:
            raise PlanError("an aggregation needs a key or a measure")
        keys = (Field(key.name, key.expr.type) for key in self.keys)
        self._set_schema(Struct((*keys, *(Field(m.name, m.type) for m in self.measures))))

    def label(self) -> str:
        """The keys and the measures."""
        by = f"by {', '.join(map(str, self.keys))}: " if self.keys else ""
        return by + ", ".join(map(str, self.measures))
