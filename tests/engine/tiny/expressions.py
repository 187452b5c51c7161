"""Expressions of the tiny engine: made by its `ExpressionVisitor`, run as flat programs."""

from __future__ import annotations

import decimal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.engine.tiny.casts import cast
from tests.engine.tiny.functions import OTHERS, STRICT
from tests.engine.tiny.types import Type
from tests.engine.tiny.values import DAY

from millpond.base.errors import UnsupportedExpressionError
from millpond.plan.visitor import ExpressionVisitor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.engine.tiny.types import TinySchemas

Row = tuple[Any, ...]
_BOOLEAN = Type("boolean")


@dataclass(eq=False)
class Expression:
    """A step of a program: a function of the row, the element, and its arguments' values."""

    type: Type
    compute: Callable[..., Any]
    args: tuple[Expression, ...] = ()
    program: list[Expression] = field(default_factory=list)

    def __call__(self, row: dict[str, Any], element: Any = None) -> Any:
        """The value for a row; no recursion, and shared parts once."""
        if not self.program:
            self.program = _in_order(self)
        values: dict[int, Any] = {}
        for step in self.program:
            given = [values[id(arg)] for arg in step.args]
            values[id(step)] = step.compute(row, element, *given)
        return values[id(self)]


def _in_order(root: Expression) -> list[Expression]:
    done: dict[int, Expression] = {}
    todo = [(root, False)]
    while todo:
        node, ready = todo.pop()
        if id(node) in done:
            continue
        if ready:
            done[id(node)] = node
        else:
            todo.append((node, True))
            todo.extend((arg, False) for arg in reversed(node.args))
    return list(done.values())


@dataclass(frozen=True)
class Named:
    name: str
    expression: Expression


@dataclass(frozen=True)
class SortKey:
    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Measure:
    name: str
    function: str
    type: Type
    argument: Expression | None
    where: Expression | None


class TinyExpressions(ExpressionVisitor):
    """Collects expressions in lists; the id of a list is its position."""

    engine = "tiny"

    def __init__(self, schemas: TinySchemas) -> None:
        self.schemas: TinySchemas = schemas
        self.lists: list[list[Any]] = []

    def make_expression_list(self, reserve: int) -> int:
        self.lists.append([])
        return len(self.lists) - 1

    def one(self, list_id: int) -> Expression:
        (found,) = self.lists[list_id]
        assert isinstance(found, Expression)
        return found

    def maybe(self, list_id: int | None) -> Expression | None:
        return None if list_id is None else self.one(list_id)

    def visit_shared(self, sibling_list_id: int, shared_list_id: int) -> None:
        self.lists[sibling_list_id].append(self.one(shared_list_id))

    def visit_path(
        self,
        sibling_list_id: int,
        steps: Sequence[str | int | None],
        in_element: bool,
        type_id: int,
    ) -> None:
        def follow(row: dict[str, Any], element: Any) -> Any:
            return _follow(element if in_element else row, tuple(steps))

        self.lists[sibling_list_id].append(Expression(self.schemas.type(type_id), follow))

    def _literal(self, to: int, type_: Type, value: Any) -> None:
        self.lists[to].append(Expression(type_, lambda row, element: value))

    def visit_literal_null(self, sibling_list_id: int, type_id: int) -> None:
        self._literal(sibling_list_id, self.schemas.type(type_id), None)

    def visit_literal_boolean(self, sibling_list_id: int, value: bool) -> None:
        self._literal(sibling_list_id, _BOOLEAN, value)

    def visit_literal_byte(self, sibling_list_id: int, value: int) -> None:
        self._literal(sibling_list_id, Type("byte"), value)

    def visit_literal_short(self, sibling_list_id: int, value: int) -> None:
        self._literal(sibling_list_id, Type("short"), value)

    def visit_literal_integer(self, sibling_list_id: int, value: int) -> None:
        self._literal(sibling_list_id, Type("integer"), value)

    def visit_literal_long(self, sibling_list_id: int, value: int) -> None:
        self._literal(sibling_list_id, Type("long"), value)

    def visit_literal_float(self, sibling_list_id: int, value: float) -> None:
        self._literal(sibling_list_id, Type("float"), value)

    def visit_literal_double(self, sibling_list_id: int, value: float) -> None:
        self._literal(sibling_list_id, Type("double"), value)

    def visit_literal_decimal(
        self, sibling_list_id: int, unscaled: int, precision: int, scale: int
    ) -> None:
        type_ = Type("decimal", (), precision, scale)
        self._literal(sibling_list_id, type_, decimal.Decimal(f"{unscaled}E-{scale}"))

    def visit_literal_string(self, sibling_list_id: int, value: str) -> None:
        self._literal(sibling_list_id, Type("string"), value)

    def visit_literal_binary(self, sibling_list_id: int, value: bytes) -> None:
        self._literal(sibling_list_id, Type("binary"), value)

    def visit_literal_date(self, sibling_list_id: int, days: int) -> None:
        self._literal(sibling_list_id, Type("date"), days)

    def visit_literal_timestamp(self, sibling_list_id: int, micros: int) -> None:
        self._literal(sibling_list_id, Type("timestamp"), micros)

    def visit_literal_timestamp_ntz(self, sibling_list_id: int, micros: int) -> None:
        self._literal(sibling_list_id, Type("timestamp_ntz"), micros)

    def visit_call(
        self, sibling_list_id: int, function: str, type_id: int, child_list_id: int
    ) -> None:
        type_, args = self.schemas.type(type_id), tuple(self.lists[child_list_id])
        compute = _function(function, type_, args[0].type)
        self.lists[sibling_list_id].append(Expression(type_, compute, args))

    def visit_cast(
        self, sibling_list_id: int, null_on_error: bool, type_id: int, child_list_id: int
    ) -> None:
        target, (arg,) = self.schemas.type(type_id), self.lists[child_list_id]

        def compute(row: dict[str, Any], element: Any, value: Any) -> Any:
            return cast(value, arg.type, target, null_on_error=null_on_error)

        self.lists[sibling_list_id].append(Expression(target, compute, (arg,)))

    def visit_any(self, sibling_list_id: int, child_list_id: int) -> None:
        self._quantifier(sibling_list_id, child_list_id, decisive=True)

    def visit_all(self, sibling_list_id: int, child_list_id: int) -> None:
        self._quantifier(sibling_list_id, child_list_id, decisive=False)

    def _quantifier(self, to: int, children: int, *, decisive: bool) -> None:
        items, predicate = self.lists[children]

        def compute(row: dict[str, Any], element: Any, values: list[Any] | None) -> bool | None:
            if values is None:
                return None
            found = [predicate(row, value) for value in values]
            return decisive if decisive in found else None if None in found else not decisive

        self.lists[to].append(Expression(_BOOLEAN, compute, (items,)))

    def visit_named(self, sibling_list_id: int, name: str, child_list_id: int) -> None:
        self.lists[sibling_list_id].append(Named(name, self.one(child_list_id)))

    def visit_sort_key(
        self, sibling_list_id: int, descending: bool, nulls_first: bool, child_list_id: int
    ) -> None:
        key = SortKey(self.one(child_list_id), descending, nulls_first)
        self.lists[sibling_list_id].append(key)

    def visit_measure(
        self,
        sibling_list_id: int,
        name: str,
        function: str,
        type_id: int,
        argument_list_id: int | None,
        where_list_id: int | None,
    ) -> None:
        arg, where = self.maybe(argument_list_id), self.maybe(where_list_id)
        measure = Measure(name, function, self.schemas.type(type_id), arg, where)
        self.lists[sibling_list_id].append(measure)


def _function(name: str, type_: Type, first: Type) -> Callable[..., Any]:
    if name in OTHERS:
        return lambda row, element, *values: OTHERS[name](type_, *values)
    if name not in STRICT:
        raise UnsupportedExpressionError(name, "tiny")
    # The parts of a day are asked of dates and of timestamps alike.
    in_days = name in ("year", "month", "day") and first.kind != "date"

    def compute(row: dict[str, Any], element: Any, *values: Any) -> Any:
        if None in values:
            return None
        return STRICT[name](type_, *(v // DAY for v in values) if in_days else values)

    return compute


def _follow(value: Any, steps: tuple[str | int | None, ...]) -> Any:
    for at, step in enumerate(steps):
        if value is None:
            return None
        if step is None:
            return [_follow(item, steps[at + 1 :]) for item in value]
        if isinstance(step, int):
            value = value[step] if -len(value) <= step < len(value) else None
        else:
            value = (value if isinstance(value, dict) else dict(value)).get(step)
    return value
