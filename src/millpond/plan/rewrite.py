"""A node with its expressions exchanged, whatever fields they stand in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from millpond.plan.aggregates import BoundMeasure
from millpond.plan.bound import BoundExpr, BoundNamed, BoundSortKey
from millpond.plan.streams import StatefulMapping, WindowCall

if TYPE_CHECKING:
    from millpond.plan.node import Plan

Change: TypeAlias = Callable[[BoundExpr], BoundExpr]
HOLDERS = (BoundNamed, BoundSortKey, BoundMeasure, WindowCall, StatefulMapping)
"""The parts of nodes that hold expressions."""


def map_expressions(node: Plan, change: Change) -> Plan:
    """The node with each of its own expressions changed; itself where none did.

    The change keeps types.
    """
    new = changed_fields(node, change)
    return replace(node, **new) if new else node  # type: ignore[type-var]


def changed_fields(node: Plan, change: Change) -> dict[str, Any]:
    """Those fields of a node that hold expressions that change, with their new values."""
    new: dict[str, Any] = {}
    if not node.children:  # sources hold no expressions, but perhaps a great many files
        return new
    for field in fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        changed = _map(value, change)
        if changed is not value:
            new[field.name] = changed
    return new


def own_expressions(node: Plan) -> Iterator[BoundExpr]:
    """The expressions that stand in a node itself."""
    found: list[BoundExpr] = []

    def note(expr: BoundExpr) -> BoundExpr:
        found.append(expr)
        return expr

    changed_fields(node, note)
    return iter(found)


def _map(value: Any, change: Change) -> Any:
    if isinstance(value, BoundExpr):
        return change(value)
    if isinstance(value, tuple):
        items = tuple(_map(item, change) for item in value)
        same = all(a is b for a, b in zip(items, value, strict=True))
        return value if same else items
    if isinstance(value, HOLDERS):
        given = {f.name: getattr(value, f.name) for f in fields(value)}
        new = {name: _map(item, change) for name, item in given.items()}
        changed = {name: item for name, item in new.items() if item is not given[name]}
        return replace(value, **changed) if changed else value
    return value
