"""Joins as people ask for them, made of `Join` and `Project`: a shared key appears once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import SchemaError, TypeMismatchError
from millpond.plan import expr as e
from millpond.plan.arguments import items_of, wrong
from millpond.plan.bind import as_bound, bind, cast_to
from millpond.plan.bound import BoundExpr, BoundNamed, BoundPath
from millpond.plan.paths import Name
from millpond.plan.rows import Join, JoinKind, Project
from millpond.plan.tree import transform
from millpond.plan.types import common_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct


def build_join(
    left: Plan,
    right: Plan,
    *,
    on: str | Sequence[str | tuple[e.Expr | str, e.Expr | str]],
    how: JoinKind,
    nulls_equal: bool,
) -> Plan:
    """A join by shared names (each once in the result) or by pairs of expressions."""
    items = [_item(item) for item in items_of(on, "join(on=...)", _KEYS)]
    shared = [item for item in items if isinstance(item, str)]
    _check_shared(shared, left.schema, right.schema)
    pairs = [(item, item) if isinstance(item, str) else item for item in items]
    keys = tuple(_key(left, right, a, b) for a, b in pairs)
    if not shared or how in ("semi", "anti"):
        return Join(left, right, how, keys, nulls_equal)
    hidden = {name: _free_name(name, left, right) for name in shared}
    renamed = right.select(*(e.col(n).alias(hidden.get(n, n)) for n in right.schema.names))
    keys = tuple((a, _with_names(b, hidden)) for a, b in keys)
    joined = Join(left, renamed, how, keys, nulls_equal)
    columns = []
    for name in (*left.schema.names, *(n for n in right.schema.names if n not in hidden)):
        expr: e.Expr = e.col(name)
        if how == "full" and name in hidden:
            expr = expr.coalesce(e.col(hidden[name]))
        columns.append(BoundNamed(name, bind(expr, joined.schema)))
    return Project(joined, tuple(columns))


_KEYS: Final = "a column's name, or a list of names and pairs"


def _item(item: object) -> Any:
    """A key: a name that both sides have, or a pair of one expression each."""
    if isinstance(item, str) or (isinstance(item, tuple | list) and len(item) == 2):
        return item
    raise wrong("join(on=...)", _KEYS, item, hint="on='site', or on=[(left, right)]")


def _check_shared(names: list[str], left: Struct, right: Struct) -> None:
    for name in names:
        for side, schema in (("left", left), ("right", right)):
            if name not in schema:
                raise SchemaError(
                    f"the {side} side of the join has no column {name!r}", hint=schema.near(name)
                )


def _key(left: Plan, right: Plan, a: e.Expr | str, b: e.Expr | str) -> tuple[BoundExpr, BoundExpr]:
    first, second = as_bound(a, left.schema), as_bound(b, right.schema)
    found = common_type(first.type, second.type)
    if found is None:
        raise TypeMismatchError(
            f"join keys {first!r} ({first.type}) and {second!r} ({second.type}) "
            "have no common type",
            hint="cast one of them",
        )
    return cast_to(first, found), cast_to(second, found)


def _with_names(expr: BoundExpr, names: dict[str, str]) -> BoundExpr:
    """The expression over a schema in which some columns have other names."""

    def rename(node: BoundExpr) -> BoundExpr:
        if not isinstance(node, BoundPath) or node.scope != "row":
            return node
        first = node.steps[0]
        if not isinstance(first, Name) or first.name not in names:
            return node
        return replace(node, steps=(Name(names[first.name]), *node.steps[1:]))

    return transform(expr, rename)


def _free_name(name: str, left: Plan, right: Plan) -> str:
    taken = {*left.schema.names, *right.schema.names}
    candidate = f"_right_{name}"
    while candidate in taken:
        candidate = "_" + candidate
    return candidate
