"""What is chosen of sorted rows is chosen before they are sorted: less is carried along.

Where a projection takes nothing but columns and members of them, Spark would carry the structs
around the members through its sort.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from millpond.plan.bound import BoundNamed, BoundPath
from millpond.plan.order import Sort, TopK
from millpond.plan.paths import Name
from millpond.plan.rows import Project
from millpond.plan.tree import transform

if TYPE_CHECKING:
    from millpond.plan.bound import BoundExpr, BoundSortKey
    from millpond.plan.node import Plan


def narrow(plan: Plan) -> Plan:
    """The plan with such projections below the sorts that they stand on."""
    return transform(plan, _narrowed)


def _narrowed(node: Plan) -> Plan:
    if not isinstance(node, Project) or not isinstance(node.input, Sort | TopK):
        return node
    exprs = [column.expr for column in node.columns]
    if not all(map(_is_place, exprs)) or not any(map(_is_inside, exprs)):
        return node
    order = node.input
    names = _key_names(order.keys, node.columns)
    own = {column.name for column in node.columns}
    keys = zip(names, order.keys, strict=True)
    added = (BoundNamed(name, key.expr) for name, key in keys if name not in own)
    keys = zip(names, order.keys, strict=True)
    sorted_ = replace(
        order,
        input=Project(order.input, (*node.columns, *added)),
        keys=tuple(replace(key, expr=_column(name, key.expr)) for name, key in keys),
    )
    return Project(
        sorted_, tuple(BoundNamed(c.name, _column(c.name, c.expr)) for c in node.columns)
    )


def _column(name: str, expr: BoundExpr) -> BoundPath:
    return BoundPath((Name(name),), expr.type)


def _is_place(expr: BoundExpr) -> bool:
    """Whether it is a column or a member of one."""
    return isinstance(expr, BoundPath) and all(isinstance(step, Name) for step in expr.steps)


def _is_inside(expr: BoundExpr) -> bool:
    return isinstance(expr, BoundPath) and len(expr.steps) > 1


def _key_names(keys: tuple[BoundSortKey, ...], columns: tuple[BoundNamed, ...]) -> list[str]:
    """A name for each key: that of the column that it is, or a new one."""
    known = {c.expr.steps: c.name for c in columns if isinstance(c.expr, BoundPath)}
    taken = {column.name for column in columns}
    free = (name for name in map("_key{}".format, count()) if name not in taken)
    return [
        known[key.expr.steps]
        if isinstance(key.expr, BoundPath) and key.expr.steps in known
        else next(free)
        for key in keys
    ]
