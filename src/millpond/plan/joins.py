"""Joins as people ask for them, made of `Join` and `Project`: a shared key appears once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.base.errors import TypeMismatchError
from millpond.plan import expr as e
from millpond.plan.bind import as_bound, bind, cast_to
from millpond.plan.bound import BoundExpr, BoundNamed
from millpond.plan.rows import Join, JoinKind, Project
from millpond.plan.types import common_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.node import Plan


def build_join(
    left: Plan,
    right: Plan,
    *,
    on: str | Sequence[str | tuple[e.Expr | str, e.Expr | str]],
    how: JoinKind,
    nulls_equal: bool,
) -> Plan:
    """A join by shared names (each once in the result) or by pairs of expressions."""
    items = (on,) if isinstance(on, str) else tuple(on)
    shared = [item for item in items if isinstance(item, str)]
    pairs = [(item, item) if isinstance(item, str) else item for item in items]
    one_side = how in ("semi", "anti")
    if not shared or one_side:
        keys = tuple(_key(left, right, a, b) for a, b in pairs)
        return Join(left, right, how, keys, nulls_equal)
    hidden = {name: _free_name(name, left, right) for name in shared}
    renamed = right.select(*(e.col(n).alias(hidden.get(n, n)) for n in right.schema.names))
    keys = tuple(
        _key(left, renamed, a, hidden[a] if isinstance(a, str) and a in hidden else b)
        for a, b in pairs
    )
    joined = Join(left, renamed, how, keys, nulls_equal)
    columns = []
    for name in (*left.schema.names, *(n for n in right.schema.names if n not in shared)):
        expr: e.Expr = e.col(name)
        if how == "full" and name in hidden:
            expr = expr.coalesce(e.col(hidden[name]))
        columns.append(BoundNamed(name, bind(expr, joined.schema)))
    return Project(joined, tuple(columns))


def _key(
    left: Plan, right: Plan, a: e.Expr | str, b: e.Expr | str
) -> tuple[BoundExpr, BoundExpr]:
    first, second = as_bound(a, left.schema), as_bound(b, right.schema)
    found = common_type(first.type, second.type)
    if found is None:
        raise TypeMismatchError(
            f"join keys {first} ({first.type}) and {second} ({second.type}) have no common type",
            hint="cast one of them",
        )
    return cast_to(first, found), cast_to(second, found)


def _free_name(name: str, left: Plan, right: Plan) -> str:
    taken = {*left.schema.names, *right.schema.names}
    candidate = f"_right_{name}"
    while candidate in taken:
        candidate = "_" + candidate
    return candidate
