"""What is needed of a plan's rows: whole columns, some members of structs, or just that they exist.

A `Need` is a tree that follows the shape of a type. `narrowed` cuts a type down to it, and that is
the decode plan of a scan: the leaves that are left are the columns that are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from millpond.plan.bound import BoundCall, BoundExpr, BoundPath, BoundQuantifier
from millpond.plan.paths import Each, Name
from millpond.plan.types import DataType, Decimal, Field, List, Primitive, Struct

if TYPE_CHECKING:
    from millpond.plan.paths import Step


@dataclass(slots=True)
class Need:
    """What is needed of a value: all of it, or some members, or parts of its elements."""

    whole: bool = False
    members: dict[str, Need] = field(default_factory=dict)
    element: Need | None = None

    def member(self, name: str) -> Need:
        """What is needed of a member; asking for it makes it needed."""
        return self.members.setdefault(name, Need())

    def of_element(self) -> Need:
        """What is needed of a list's elements; asking for it makes them needed."""
        if self.element is None:
            self.element = Need()
        return self.element

    def has(self, name: str) -> bool:
        """Whether anything of this column or member is needed."""
        return self.whole or name in self.members

    def merge(self, other: Need) -> None:
        """Need what the other one needs, too."""
        self.whole = self.whole or other.whole
        for name, need in other.members.items():
            self.member(name).merge(need)
        if other.element is not None:
            self.of_element().merge(other.element)

    def copy(self) -> Need:
        """The same, to be changed on its own."""
        made = Need()
        made.merge(self)
        return made


def everything() -> Need:
    """All of a value."""
    return Need(whole=True)


def need_expression(need: Need, expr: BoundExpr, schema: Struct) -> None:
    """Add what an expression over rows of this schema looks at.

    >>> from millpond.plan.bind import bind
    >>> from millpond.plan.expr import path
    >>> from millpond.plan.types import LONG, STRING
    >>> item = Struct.of(sku=STRING, price=LONG, note=STRING)
    >>> schema = Struct.of(items=List(item), site=Struct.of(id=LONG, name=STRING))
    >>> need = Need()
    >>> need_expression(need, bind(path("items").any(path("price") > 3), schema), schema)
    >>> print(narrowed(schema, need))
    struct<items: list<struct<price: long>>>
    """
    todo: list[tuple[BoundExpr, tuple[Need, DataType] | None]] = [(expr, None)]
    seen: set[tuple[int, int]] = set()  # a part may stand in an expression many times
    while todo:
        node, scope = todo.pop()
        key = (id(node), 0 if scope is None else id(scope[0]))
        if key in seen:
            continue
        seen.add(key)
        if isinstance(node, BoundPath):
            end = _end_of(node, (need, schema), scope)
            if end is not None:
                end[0].whole = True
        elif isinstance(node, BoundQuantifier):
            _need_quantifier(node, (need, schema), scope, todo)
        elif _only_looks_whether(node):
            path = node.children[0]
            assert isinstance(path, BoundPath)
            _end_of(path, (need, schema), scope)
        else:
            todo.extend((child, scope) for child in node.children)


def need_path(need: Need, path: BoundPath, schema: Struct, part: Need) -> None:
    """Add a part of what a path leads to: the part that somebody above needs of it."""
    end = descend(need, path.steps, schema)
    if end is None:
        return
    for _ in range(_depth(path.steps)):
        if part.whole or part.element is None:
            break
        part = part.element
    else:
        end[0].merge(part)
        return
    end[0].whole = end[0].whole or part.whole


def descend(need: Need, steps: tuple[Step, ...], type_: DataType) -> tuple[Need, DataType] | None:
    """What is needed at the end of a path; None where everything is needed on the way there."""
    for step in steps:
        if need.whole:
            return None
        if isinstance(type_, Struct) and isinstance(step, Name):
            need, type_ = need.member(step.name), type_.field(step.name).type
        elif isinstance(type_, List):
            need, type_ = need.of_element(), type_.element
        else:  # a map is read as a whole
            need.whole = True
            return None
    return need, type_


def _end_of(
    path: BoundPath, row: tuple[Need, DataType], scope: tuple[Need, DataType] | None
) -> tuple[Need, DataType] | None:
    base = row if path.scope == "row" else scope
    return None if base is None else descend(base[0], path.steps, base[1])


def _only_looks_whether(node: BoundExpr) -> bool:
    """Whether a value is there, or how many: no member of it is looked at."""
    return (
        isinstance(node, BoundCall)
        and node.function in ("is_null", "is_not_null", "length")
        and isinstance(node.args[0], BoundPath)
        and isinstance(node.args[0].type, Struct | List)
    )


def _need_quantifier(
    node: BoundQuantifier,
    row: tuple[Need, DataType],
    scope: tuple[Need, DataType] | None,
    todo: list[tuple[BoundExpr, tuple[Need, DataType] | None]],
) -> None:
    if not isinstance(node.list, BoundPath):
        todo.append((node.list, scope))
        return
    end = _end_of(node.list, row, scope)
    if end is None:
        return
    depth = _depth(node.list.steps)
    if depth == 0 and isinstance(end[1], List):
        todo.append((node.predicate, (end[0].of_element(), end[1].element)))
    elif depth == 1:
        todo.append((node.predicate, end))
    else:
        end[0].whole = True


def _depth(steps: tuple[Step, ...]) -> int:
    return sum(isinstance(step, Each) for step in steps)


def narrowed(schema: Struct, need: Need) -> Struct:
    """The schema without what is not needed; never without any field at all."""
    found = _narrow(schema, need)
    assert isinstance(found, Struct)
    return found


_NOTHING: Final = Need()


def _narrow(type_: DataType, need: Need) -> DataType:
    if need.whole:
        return type_
    if isinstance(type_, List):
        element = _narrow(type_.element, need.element or _NOTHING)
        return type_ if element is type_.element else replace(type_, element=element)
    if not isinstance(type_, Struct) or not type_.fields:
        return type_
    kept = [f for f in type_.fields if f.name in need.members] or [cheapest(type_)]
    new = tuple(_narrow_field(f, need.members.get(f.name, _NOTHING)) for f in kept)
    same = len(new) == len(type_.fields) and all(
        a is b for a, b in zip(new, type_.fields, strict=True)
    )
    return type_ if same else Struct(new)


def _narrow_field(item: Field, need: Need) -> Field:
    type_ = _narrow(item.type, need)
    return item if type_ is item.type else replace(item, type=type_)


_WIDTHS: Final = {
    "boolean": 1,
    "byte": 1,
    "short": 2,
    "integer": 4,
    "date": 4,
    "float": 4,
    "long": 8,
    "double": 8,
    "timestamp": 8,
    "timestamp_ntz": 8,
}


def cheapest(schema: Struct) -> Field:
    """The field to read where any one will do: one that is always there, then a narrow one."""
    return min(schema.fields, key=lambda f: (not _is_scalar(f.type), f.nullable, _width(f.type)))


def _is_scalar(type_: DataType) -> bool:
    return isinstance(type_, Primitive | Decimal)


def _width(type_: DataType) -> int:
    if isinstance(type_, Primitive):
        return _WIDTHS.get(type_.name, 32)
    return 16 if isinstance(type_, Decimal) else 100
