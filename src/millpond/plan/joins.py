"""Joins as people ask for them, made of `Join` and `Project`: a shared key appears once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from millpond.base.errors import PlanError, SchemaError, TypeMismatchError
from millpond.plan import expr as e
from millpond.plan.arguments import items_of, text_of, wrong
from millpond.plan.bind import as_bound, as_key, bind, cast_to
from millpond.plan.bound import BoundExpr, BoundNamed, BoundPath
from millpond.plan.paths import Name
from millpond.plan.rows import JOIN_KINDS, Join, JoinKind, Project
from millpond.plan.tree import transform
from millpond.plan.types import common_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct


JoinChoice: TypeAlias = JoinKind | Literal["right", "cross"]
"""How people join; a right join is a left one seen from the other side."""
_CHOICES: Final = (*JOIN_KINDS, "right", "cross")


def build_join(
    left: Plan,
    right: Plan,
    *,
    on: str | Sequence[str | tuple[e.Expr | str, e.Expr | str]],
    how: JoinChoice,
    nulls_equal: bool,
    suffix: str | None,
) -> Plan:
    """A join by shared names (each once in the result) or by pairs of expressions."""
    if how not in _CHOICES:
        raise PlanError(f"unknown join {how!r}", hint=f"one of {', '.join(_CHOICES)}")
    items = _items(on, how)
    shared = [item for item in items if isinstance(item, str)]
    _check_shared(shared, left.schema, right.schema)
    pairs = [(item, item) if isinstance(item, str) else item for item in items]
    keys = tuple(_key(left, right, a, b) for a, b in pairs)
    if how == "semi" or how == "anti":
        return Join(left, right, how, keys, nulls_equal)
    hidden = {name: _free_name(name, left, right) for name in shared}
    renames = {**_suffixed(left, right, shared, suffix), **hidden}
    if renames:
        right = right.select(*(e.col(n).alias(renames.get(n, n)) for n in right.schema.names))
        keys = tuple((a, _with_names(b, renames)) for a, b in keys)
    if how == "right":
        joined = Join(right, left, "left", tuple((b, a) for a, b in keys), nulls_equal)
    else:
        joined = Join(left, right, "inner" if how == "cross" else how, keys, nulls_equal)
    if not hidden and how != "right":
        return joined
    columns = []
    for name in (*left.schema.names, *(n for n in right.schema.names if n not in hidden.values())):
        expr: e.Expr = e.col(name)
        if name in hidden and how == "right":
            expr = e.col(hidden[name])
        elif name in hidden and how == "full":
            expr = expr.coalesce(e.col(hidden[name]))
        columns.append(BoundNamed(name, bind(expr, joined.schema)))
    return Project(joined, tuple(columns))


_KEYS: Final = "a column's name, or a list of names and pairs"


def _items(on: object, how: str) -> list[Any]:
    """The keys: names that both sides have, and pairs of one expression each."""
    items = items_of(on, "join(on=...)", _KEYS)
    if how == "cross":
        if items:
            raise PlanError("a cross join has no keys", hint="leave out on=, or how='cross'")
        return [(e.lit(0), e.lit(0))]
    if not items:
        raise PlanError("a join needs at least one key", hint="on='site', or how='cross'")
    for item in items:
        if not isinstance(item, str) and not (isinstance(item, tuple | list) and len(item) == 2):
            raise wrong("join(on=...)", _KEYS, item, hint="on='site', or on=[(left, right)]")
    return list(items)


def _suffixed(left: Plan, right: Plan, shared: list[str], suffix: str | None) -> dict[str, str]:
    """New names for what both sides have besides the shared keys, if there is a suffix."""
    if suffix is None:
        return {}
    text_of(suffix, "join(suffix=...)", "the end of a name", hint="suffix='_right'")
    both = (n for n in right.schema.names if n in left.schema and n not in shared)
    return {name: name + suffix for name in both}


def _check_shared(names: list[str], left: Struct, right: Struct) -> None:
    for name in names:
        for side, schema in (("left", left), ("right", right)):
            if name not in schema:
                raise SchemaError(
                    f"the {side} side of the join has no column {name!r}", hint=schema.near(name)
                )


def _key(left: Plan, right: Plan, a: e.Expr | str, b: e.Expr | str) -> tuple[BoundExpr, BoundExpr]:
    for key in (a, b):
        as_key(key, "join(on=...)")
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
