"""Bound expressions made to fit a schema whose structs have lost members that nobody needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millpond.plan.bind import resolve_path
from millpond.plan.bound import BoundExpr, BoundPath, BoundQuantifier, row_paths
from millpond.plan.types import List

if TYPE_CHECKING:
    from millpond.plan.types import DataType, Struct


def retype(expr: BoundExpr, schema: Struct) -> BoundExpr:
    """The expression over rows of this schema; itself where its paths lead to the same types.

    >>> from millpond.plan.bind import bind
    >>> from millpond.plan.expr import path
    >>> from millpond.plan.types import LONG, STRING, Struct
    >>> wide, narrow = (Struct.of(s=Struct.of(x=LONG, y=STRING)), Struct.of(s=Struct.of(x=LONG)))
    >>> retype(bind(path("s").is_null(), wide), narrow).children[0].type
    Struct(fields=(Field(name='x', type=Primitive('long'), nullable=True, metadata='{}'),))
    """
    if all(resolve_path(path.steps, schema) == path.type for path in row_paths(expr)):
        return expr
    done: dict[tuple[int, int], BoundExpr] = {}
    todo: list[tuple[BoundExpr, DataType | None]] = [(expr, None)]
    while todo:
        node, scope = todo[-1]
        if _key(node, scope) in done:
            todo.pop()
            continue
        parts = _parts(node, scope, done)
        missing = [part for part in parts if _key(*part) not in done]
        if missing:
            todo.extend(reversed(missing))
            continue
        todo.pop()
        if isinstance(node, BoundPath):
            root = schema if node.scope == "row" else scope
            assert root is not None
            made: BoundExpr = replace(node, type=resolve_path(node.steps, root))
        elif parts:
            made = node.with_children(tuple(done[_key(*part)] for part in parts))
        else:
            made = node
        done[_key(node, scope)] = made
    return done[_key(expr, None)]


def _parts(
    node: BoundExpr, scope: DataType | None, done: dict[tuple[int, int], BoundExpr]
) -> list[tuple[BoundExpr, DataType | None]]:
    """What stands below a node, and what its elements are; a predicate follows its list."""
    if not isinstance(node, BoundQuantifier):
        return [(child, scope) for child in node.children]
    found: list[tuple[BoundExpr, DataType | None]] = [(node.list, scope)]
    made = done.get(_key(node.list, scope))
    if made is not None:
        assert isinstance(made.type, List)
        found.append((node.predicate, made.type.element))
    return found


def _key(node: BoundExpr, scope: DataType | None) -> tuple[int, int]:
    """A part that stands in an expression many times is made once for each type of elements."""
    return id(node), id(scope)
