"""What a node needs of its inputs' rows, when so much is needed of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.bound import BoundNamed, BoundPath
from millpond.plan.optimizer.needs import Need, cheapest, everything, need_expression, need_path
from millpond.plan.order import Head, Sample, Shuffle, Sort, Tail, Take, TopK
from millpond.plan.rewrite import own_expressions
from millpond.plan.rows import Aggregate, Filter, FilterOrdered, Join, ParseJson, Project, Union
from millpond.plan.sources import CONTENT, RANGE, DynamicScan
from millpond.plan.streams import StatefulFunction, Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millpond.plan.aggregates import BoundMeasure
    from millpond.plan.bound import BoundExpr
    from millpond.plan.node import Plan
    from millpond.plan.sources import Scan
    from millpond.plan.streams import WindowCall
    from millpond.plan.types import Struct


def input_needs(node: Plan, need: Need, *, whole_unions: bool) -> tuple[Need, ...]:
    """The needs of the inputs, in order. `need` itself may be handed on, and grow there."""
    if isinstance(node, Filter | Sort | TopK | Head | Tail | Take | Sample | Shuffle):
        return (_with(need, own_expressions(node), node.input.schema),)
    if isinstance(node, FilterOrdered):
        return (_with_columns(need, node.row_filter.columns),)
    if isinstance(node, Project):
        return (_below_project(node, need),)
    if isinstance(node, Aggregate):
        return (_below_groups(node, need),)
    if isinstance(node, ParseJson):
        return (_below_parse(node, need),)
    if isinstance(node, Window):
        return (_below_window(node, need),)
    if isinstance(node, StatefulFunction):
        return (_below_stateful(node, need),)
    if isinstance(node, DynamicScan):
        return (_below_files(node, need),)
    if isinstance(node, Union):
        return tuple(_below_union(node, need, whole=whole_unions) for _ in node.members)
    if isinstance(node, Join):
        return _below_join(node, need)
    return tuple(everything() for _ in node.children)


def kept_columns(node: Project, need: Need) -> tuple[BoundNamed, ...]:
    """The columns of a projection that are needed, or the cheapest if none is."""
    kept = tuple(column for column in node.columns if need.has(column.name))
    if kept or not node.columns:
        return kept
    paths = [column for column in node.columns if isinstance(column.expr, BoundPath)]
    return ((paths or node.columns)[0],)


def kept_measures(node: Aggregate, need: Need) -> tuple[BoundMeasure, ...]:
    """The measures that are needed; without keys at least one, or there would be no row."""
    kept = tuple(measure for measure in node.measures if need.has(measure.name))
    if kept or node.keys:
        return kept
    return (min(node.measures, key=lambda m: (m.function != "count", m.arg is not None)),)


def kept_calls(node: Window, need: Need) -> tuple[WindowCall, ...]:
    """The window functions whose columns are needed."""
    return tuple(call for call in node.calls if need.has(call.name))


def _with(need: Need, exprs: Iterable[BoundExpr], schema: Struct) -> Need:
    for expr in exprs:
        need_expression(need, expr, schema)
    return need


def _with_columns(need: Need, names: tuple[str, ...]) -> Need:
    for name in names:
        need.member(name).whole = True
    return need


def _without(need: Need, names: set[str]) -> Need:
    """A need of its own, without columns that only exist above."""
    copy = need.copy()
    for name in names:
        copy.members.pop(name, None)
    return copy


def _below_project(node: Project, need: Need) -> Need:
    below = Need()
    schema = node.input.schema
    for column in kept_columns(node, need):
        part = everything() if need.whole else need.members.get(column.name, everything())
        if isinstance(column.expr, BoundPath) and not part.whole:
            need_path(below, column.expr, schema, part)
        else:
            need_expression(below, column.expr, schema)
    return below


def _below_groups(node: Aggregate, need: Need) -> Need:
    below = Need()
    schema = node.input.schema
    exprs: list[BoundExpr | None] = [key.expr for key in node.keys]
    for measure in kept_measures(node, need):
        exprs += [measure.arg, measure.where]
    return _with(below, [expr for expr in exprs if expr is not None], schema)


def _below_parse(node: ParseJson, need: Need) -> Need:
    if not need.has(node.output):
        return need
    return _with_columns(_without(need, {node.output}), (node.column,))


def _below_window(node: Window, need: Need) -> Need:
    below = _without(need, {call.name for call in node.calls})
    for call in kept_calls(node, need):
        keys = (*call.partition_by, *(key.expr for key in call.order_by))
        _with(below, keys if call.arg is None else (call.arg, *keys), node.input.schema)
    return below


def _below_stateful(node: StatefulFunction, need: Need) -> Need:
    # A function that remembers sees every row, whether its result is needed or not.
    below = _with(need.copy(), own_expressions(node), node.schema)
    return _without(below, {mapping.name for mapping in node.mappings})


def _with_range(node: Scan | DynamicScan, need: Need) -> Need:
    """Which part of a file its bytes are has to be known wherever they are needed."""
    if node.format != "bytes" or need.whole or not need.has(CONTENT):
        return need
    return _with_columns(need.copy(), tuple(name for name in RANGE if name in node.constants))


def need_of_files(node: Scan | DynamicScan, need: Need) -> Need:
    """What is needed of files: where that is nothing, a constant, which takes no decoding."""
    need = _with_range(node, need)
    is_nothing = not need.whole and not any(need.has(f.name) for f in node.columns)
    if is_nothing and node.constants:
        return Need(members={node.constants[0]: Need(whole=True)})
    return need


def _below_files(node: DynamicScan, need: Need) -> Need:
    need = need_of_files(node, need)
    names = [node.path_column, *(name for name in node.constants if need.has(name))]
    if node.deleted is not None:
        names.append(node.deleted)
    return _with_columns(Need(), tuple(names))


def _below_union(node: Union, need: Need, *, whole: bool) -> Need:
    if need.whole:
        return everything()
    if not need.members and node.schema.fields:
        need.member(cheapest(node.schema).name).whole = True
    if whole:
        return _with_columns(Need(), tuple(need.members))
    return need.copy()


def _below_join(node: Join, need: Need) -> tuple[Need, Need]:
    both = node.how not in ("semi", "anti")
    left = _of_side(need, node.left.schema)
    right = _of_side(need, node.right.schema) if both else Need()
    for a, b in node.keys:
        need_expression(left, a, node.left.schema)
        need_expression(right, b, node.right.schema)
    return left, right


def _of_side(need: Need, schema: Struct) -> Need:
    if need.whole:
        return everything()
    side = Need()
    for name in schema.names:
        if name in need.members:
            side.member(name).merge(need.members[name])
    return side
