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
    values: list[BoundExpr] = []
    todo: list[tuple[str, BoundExpr, DataType | None]] = [("visit", expr, None)]
    while todo:
        action, node, scope = todo.pop()
        if action == "enter":
            assert isinstance(node, BoundQuantifier)
            assert isinstance(values[-1].type, List)
            todo.append(("visit", node.predicate, values[-1].type.element))
        elif action == "build":
            count = len(node.children)
            args = tuple(values[len(values) - count :])
            del values[len(values) - count :]
            values.append(node.with_children(args))
        elif isinstance(node, BoundPath):
            root = schema if node.scope == "row" else scope
            assert root is not None
            values.append(replace(node, type=resolve_path(node.steps, root)))
        elif not node.children:
            values.append(node)
        else:
            todo.append(("build", node, scope))
            if isinstance(node, BoundQuantifier):
                todo.append(("enter", node, scope))
                todo.append(("visit", node.list, scope))
            else:
                todo.extend(("visit", child, scope) for child in reversed(node.children))
    return values[0]
