"""The driver of an `ExpressionVisitor`: bound expressions in, calls with plain data out."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from millpond.plan import bound as b
from millpond.plan.paths import Index, Name
from millpond.plan.types import Decimal
from millpond.plan.visitor.schema import visit_type
from millpond.plan.visitor.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millpond.plan.aggregates import BoundMeasure
    from millpond.plan.paths import Step
    from millpond.plan.streams import StatefulMapping, WindowCall
    from millpond.plan.types import DataType
    from millpond.plan.visitor.expression import ExpressionVisitor

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001
_MICRO = dt.timedelta(microseconds=1)


def visit_expression(expr: b.BoundExpr, visitor: ExpressionVisitor) -> int:
    """Visit an expression; the id of the list that holds it alone."""
    return ExpressionWalk(visitor).one(expr)


class ExpressionWalk:
    """One drive: it remembers which types the engine has seen."""

    def __init__(self, visitor: ExpressionVisitor) -> None:
        self._visitor = visitor
        self._types: dict[DataType, int] = {}

    def one(self, expr: b.BoundExpr) -> int:
        """The id of a list that holds this expression alone."""
        return self.many((expr,))

    def maybe(self, expr: b.BoundExpr | None) -> int | None:
        """The same, or None for none."""
        return None if expr is None else self.one(expr)

    def many(self, exprs: Sequence[b.BoundExpr]) -> int:
        """The id of a list that holds these expressions."""
        made = self.make_list(len(exprs))
        walk([(expr, made) for expr in exprs], self)
        return made

    def named(self, columns: Sequence[b.BoundNamed]) -> int:
        """The id of a list that holds these columns."""
        made = self.make_list(len(columns))
        below = [self.make_list(1) for _ in columns]
        walk([(column.expr, to) for column, to in zip(columns, below, strict=True)], self)
        for column, to in zip(columns, below, strict=True):
            self._visitor.visit_named(made, column.name, to)
        return made

    def sort_keys(self, keys: Sequence[b.BoundSortKey]) -> int:
        """The id of a list that holds these keys."""
        made = self.make_list(len(keys))
        for key in keys:
            below = self.one(key.expr)
            self._visitor.visit_sort_key(made, key.descending, key.nulls_first, below)
        return made

    def measures(self, measures: Sequence[BoundMeasure]) -> int:
        """The id of a list that holds these measures."""
        made = self.make_list(len(measures))
        for item in measures:
            arg, where = self.maybe(item.arg), self.maybe(item.where)
            self._visitor.visit_measure(
                made, item.name, item.function, self.type(item.type), arg, where
            )
        return made

    def window_calls(self, calls: Sequence[WindowCall]) -> int:
        """The id of a list that holds these window functions."""
        made = self.make_list(len(calls))
        for call in calls:
            arg, by = self.maybe(call.arg), self.many(call.partition_by)
            self._visitor.visit_window_call(
                *(made, call.name, call.function, self.type(call.type), arg, by),
                *(self.sort_keys(call.order_by), call.start, call.end, call.offset),
            )
        return made

    def mappings(self, mappings: Sequence[StatefulMapping]) -> int:
        """The id of a list that holds these stateful functions."""
        made = self.make_list(len(mappings))
        for item in mappings:
            args, where = self.many(item.args), self.maybe(item.where)
            self._visitor.visit_stateful_mapping(
                *(made, item.name, item.function.name, item.function, self.type(item.type)),
                *(args, where, self.many(item.partition_by)),
            )
        return made

    def type(self, type_: DataType) -> int:
        """The id of a list that holds one field without a name, of this type."""
        found = self._types.get(type_)
        if found is None:
            found = self._types[type_] = visit_type(type_, self._visitor.schemas)
        return found

    # The sink of `walk`.

    def make_list(self, reserve: int) -> int:
        """A new list of expressions."""
        return self._visitor.make_expression_list(reserve)

    def is_worth_sharing(self, node: b.BoundExpr) -> bool:
        """Only what has arguments: a leaf is cheaper to visit again."""
        return not self.is_leaf(node)

    def is_leaf(self, node: b.BoundExpr) -> bool:
        """Paths and literals."""
        return isinstance(node, b.BoundPath | b.BoundLiteral)

    def share(self, siblings: int, shared: int) -> None:
        """A reference to an expression that was visited before."""
        self._visitor.visit_shared(siblings, shared)

    def visit(self, node: b.BoundExpr, siblings: int, children: int) -> None:
        """One expression."""
        visit = EXPRESSIONS.get(type(node))
        if visit is None:
            self._visitor.visit_unknown(siblings, type(node).__name__, node, children)
        else:
            visit(self, self._visitor, node, siblings, children)


def _path(
    drive: ExpressionWalk, visitor: ExpressionVisitor, node: b.BoundPath, siblings: int, _: int
) -> None:
    steps = tuple(map(_plain_step, node.steps))
    visitor.visit_path(siblings, steps, node.scope == "element", drive.type(node.type))


def _plain_step(step: Step) -> str | int | None:
    if isinstance(step, Name):
        return step.name
    return step.index if isinstance(step, Index) else None


def _literal(
    drive: ExpressionWalk, visitor: ExpressionVisitor, node: b.BoundLiteral, siblings: int, _: int
) -> None:
    value = node.value
    if value is None:
        visitor.visit_literal_null(siblings, drive.type(node.type))
    elif isinstance(node.type, Decimal):
        sign, digits, _exponent = value.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        visitor.visit_literal_decimal(siblings, unscaled, node.type.precision, node.type.scale)
    else:
        LITERALS[str(node.type)](visitor, siblings, value)


def _quantifier(
    _: ExpressionWalk, visitor: ExpressionVisitor, node: b.BoundQuantifier, to: int, below: int
) -> None:
    if node.kind == "any":
        visitor.visit_any(to, below)
    else:
        visitor.visit_all(to, below)


EXPRESSIONS: Final[Mapping[type[b.BoundExpr], Callable[..., None]]] = {
    b.BoundPath: _path,
    b.BoundLiteral: _literal,
    b.BoundCall: lambda drive, visitor, node, to, below: visitor.visit_call(
        to, node.function, drive.type(node.type), below
    ),
    b.BoundCast: lambda drive, visitor, node, to, below: visitor.visit_cast(
        to, node.on_error == "null", drive.type(node.type), below
    ),
    b.BoundParseJson: lambda drive, visitor, node, to, below: visitor.visit_parse_json(
        to, drive.type(node.type), below
    ),
    b.BoundQuantifier: _quantifier,
}
"""How each class of bound expressions is visited."""


def _micros(moment: dt.datetime) -> int:
    return (moment.replace(tzinfo=None) - _EPOCH) // _MICRO


LITERALS: Final[Mapping[str, Callable[[ExpressionVisitor, int, Any], None]]] = {
    "boolean": lambda v, to, value: v.visit_literal_boolean(to, value),
    "byte": lambda v, to, value: v.visit_literal_byte(to, value),
    "short": lambda v, to, value: v.visit_literal_short(to, value),
    "integer": lambda v, to, value: v.visit_literal_integer(to, value),
    "long": lambda v, to, value: v.visit_literal_long(to, value),
    "float": lambda v, to, value: v.visit_literal_float(to, value),
    "double": lambda v, to, value: v.visit_literal_double(to, value),
    "string": lambda v, to, value: v.visit_literal_string(to, value),
    "binary": lambda v, to, value: v.visit_literal_binary(to, value),
    "date": lambda v, to, value: v.visit_literal_date(to, (value - _EPOCH.date()).days),
    "timestamp": lambda v, to, value: v.visit_literal_timestamp(to, _micros(value)),
    "timestamp_ntz": lambda v, to, value: v.visit_literal_timestamp_ntz(to, _micros(value)),
}
"""How a literal that is not null is visited, by its type; decimals have a call of their own."""
