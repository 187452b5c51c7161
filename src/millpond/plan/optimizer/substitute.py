"""Expressions moved below a projection: each column is exchanged for what computes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.bound import BoundLiteral, BoundPath
from millpond.plan.paths import Each, Name
from millpond.plan.tree import topological, transform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.plan.bound import BoundExpr
    from millpond.plan.rows import Project


def definitions(project: Project) -> dict[str, BoundExpr]:
    """What computes each column of a projection."""
    return {column.name: column.expr for column in project.columns}


def substitute(expr: BoundExpr, columns: Mapping[str, BoundExpr]) -> BoundExpr | None:
    """The same expression over what the columns are computed from, or None where it would repeat
    work: only paths and literals are put in the place of a column.

    >>> from millpond.plan.bind import bind
    >>> from millpond.plan.expr import col, path
    >>> from millpond.plan.types import LONG, Struct
    >>> given = Struct.of(s=Struct.of(x=LONG))
    >>> upper = bind(col("a") > 3, Struct.of(a=LONG))
    >>> substitute(upper, {"a": bind(path("s.x"), given)})
    (s.x > 3)
    >>> substitute(upper, {"a": bind(path("s.x") + 1, given)}) is None
    True
    """
    found: dict[int, BoundExpr] = {}
    for node in topological(expr):
        if isinstance(node, BoundPath) and node.scope == "row":
            moved = _move_path(node, columns)
            if moved is None:
                return None
            if moved is not node:
                found[id(node)] = moved
    return transform(expr, lambda node: found.get(id(node), node)) if found else expr


def column_name(path: BoundPath) -> str:
    """The column in which a path of a row begins."""
    first = path.steps[0]
    assert isinstance(first, Name)
    return first.name


def is_column(expr: BoundExpr) -> bool:
    """Whether an expression is a column as it is."""
    return isinstance(expr, BoundPath) and expr.scope == "row" and len(expr.steps) == 1


def _move_path(path: BoundPath, columns: Mapping[str, BoundExpr]) -> BoundExpr | None:
    below = columns[column_name(path)]
    rest = path.steps[1:]
    if isinstance(below, BoundLiteral):
        if not rest:
            return below
        return BoundLiteral(None, path.type) if below.value is None else None
    if not isinstance(below, BoundPath):
        return None
    if not rest:
        return path if below.steps == path.steps else below
    # After [*], a further step means "of each element": the two paths can't be made one.
    if any(isinstance(step, Each) for step in below.steps):
        return None
    return BoundPath((*below.steps, *rest), path.type)
