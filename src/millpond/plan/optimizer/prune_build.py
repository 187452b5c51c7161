"""Nodes over inputs that have lost columns: without what nobody needs, and re-typed to fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millpond.plan.bind import resolve_path
from millpond.plan.bound import BoundNamed, BoundPath, row_paths
from millpond.plan.optimizer.needs import Need, cheapest, narrowed
from millpond.plan.optimizer.prune_needs import (
    kept_calls,
    kept_columns,
    kept_measures,
    need_of_files,
)
from millpond.plan.optimizer.retype import retype
from millpond.plan.optimizer.sharing import with_inputs
from millpond.plan.optimizer.substitute import column_name
from millpond.plan.paths import Name
from millpond.plan.rewrite import changed_fields
from millpond.plan.rows import Aggregate, Join, ParseJson, Project, Union
from millpond.plan.sources import DynamicScan, Scan, Stored, Values
from millpond.plan.streams import Sql, StatefulFunction, Window
from millpond.plan.types import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millpond.plan.node import Plan


class MembersDisagree(Exception):  # noqa: N818 - says what is found out, not what went wrong
    """The inputs of a union could not all be narrowed alike."""


def build(node: Plan, inputs: tuple[Plan, ...], need: Need) -> Plan:
    """The node over its new inputs, giving what is needed and perhaps more."""
    if isinstance(node, Scan):
        return _scan(node, need)
    if isinstance(node, Stored | Values):
        return _rows(node, need)
    if isinstance(node, Union):
        return _union(node, inputs, need)
    if isinstance(node, Join):
        return _join(node, inputs, need)
    if isinstance(node, DynamicScan):
        return _files(node, inputs[0], need)
    if isinstance(node, ParseJson):
        return _parse(node, inputs[0], need)
    if isinstance(node, Project | Aggregate | Window):
        return _shortened(node, inputs[0], need)
    return _over(node, inputs)


def _scan(node: Scan, need: Need) -> Plan:
    if node.csv is not None and not node.csv.has_header:
        return node  # its columns are found by position
    columns = _narrowed(node, need)
    return node if columns is node.columns else node.narrowed(columns)


def _narrowed(node: Scan | DynamicScan, need: Need) -> Struct:
    return narrowed(node.columns, need_of_files(node, need))


def _rows(node: Stored | Values, need: Need) -> Plan:
    kept = [name for name in node.schema.names if need.has(name)]
    if len(kept) == len(node.schema.names):
        return node
    kept = kept or [cheapest(node.schema).name]
    if len(kept) == len(node.schema.names):
        return node
    if isinstance(node, Values):
        return Values(node.data.select(kept))
    return replace(node, columns=node.columns.select(kept))


def _union(node: Union, inputs: tuple[Plan, ...], need: Need) -> Plan:
    names = [name for name in node.schema.names if need.has(name)]
    members = tuple(_select(member, names) for member in inputs)
    types = [[f.type for f in member.schema] for member in members]
    if any(other != types[0] for other in types[1:]):
        raise MembersDisagree
    return with_inputs(node, members)


def _join(node: Join, inputs: tuple[Plan, ...], need: Need) -> Plan:
    sides = []
    for number, (old, new) in enumerate(zip(node.children, inputs, strict=True)):
        carried = number == 0 or node.how not in ("semi", "anti")
        wanted = {name for name in old.schema.names if carried and need.has(name)}
        wanted |= {column_name(p) for key in node.keys for p in row_paths(key[number])}
        sides.append(_select(new, [name for name in new.schema.names if name in wanted]))
    left, right = sides
    if left is node.left and right is node.right:
        return node
    keys = tuple((retype(a, left.schema), retype(b, right.schema)) for a, b in node.keys)
    return replace(node, left=left, right=right, keys=keys)


def _files(node: DynamicScan, below: Plan, need: Need) -> Plan:
    columns = _narrowed(node, need)
    if columns is node.columns:
        return with_inputs(node, (below,))
    constants = tuple(name for name in node.constants if name in columns)
    return replace(node, input=below, columns=columns, constants=constants)


def _parse(node: ParseJson, below: Plan, need: Need) -> Plan:
    if not need.has(node.output):
        return below
    parsed = node.parsed
    if not need.whole:
        parsed = narrowed(parsed, need.members[node.output])
    if below is node.input and parsed is node.parsed:
        return node
    return replace(node, input=below, parsed=parsed)


def _shortened(node: Project | Aggregate | Window, below: Plan, need: Need) -> Plan:
    now: Plan = node
    if isinstance(node, Project):
        columns = kept_columns(node, need)
        now = node if len(columns) == len(node.columns) else replace(node, columns=columns)
    elif isinstance(node, Aggregate):
        measures = kept_measures(node, need)
        now = node if len(measures) == len(node.measures) else replace(node, measures=measures)
    else:
        calls = kept_calls(node, need)
        if not calls:
            return below
        now = node if len(calls) == len(node.calls) else replace(node, calls=calls)
    return _over(now, (below,))


def _over(node: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """The node over other inputs, its expressions bound to what these give."""
    if all(a is b for a, b in zip(node.children, inputs, strict=True)):
        return node
    if len(inputs) != 1 or isinstance(node, Sql):  # a text has no expressions to bind
        return with_inputs(node, inputs)
    schema = inputs[0].schema
    if isinstance(node, StatefulFunction):
        added = node.schema.fields[len(node.input.schema.fields) :]
        schema = Struct((*schema.fields, *added))
    new: dict[str, Any] = changed_fields(node, lambda expr: retype(expr, schema))
    return replace(node, **{**new, "input": inputs[0]})  # type: ignore[type-var]


def _select(plan: Plan, names: Iterable[str]) -> Plan:
    """The plan with just these columns."""
    wanted = tuple(names)
    if plan.schema.names == wanted:
        return plan
    return Project(plan, tuple(_named(name, plan.schema) for name in wanted))


def _named(name: str, schema: Struct) -> BoundNamed:
    steps = (Name(name),)
    return BoundNamed(name, BoundPath(steps, resolve_path(steps, schema)))
