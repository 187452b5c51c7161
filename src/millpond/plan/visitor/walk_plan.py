"""The driver of a `PlanVisitor`: a plan in, calls with plain data and list ids out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.plan import order, rows, sources, streams
from millpond.plan.literals import literal
from millpond.plan.visitor.schema import visit_schema
from millpond.plan.visitor.walk import walk
from millpond.plan.visitor.walk_expression import ExpressionWalk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.plan.visitor.plan import PlanVisitor


def visit_plan(plan: Plan, visitor: PlanVisitor) -> int:
    """Visit a plan; the id of the list that holds its root alone."""
    drive = PlanWalk(visitor)
    root = drive.make_list(1)
    walk([(plan, root)], drive)
    return root


class PlanWalk:
    """One drive: it remembers which schemas and types the engine has seen."""

    def __init__(self, visitor: PlanVisitor) -> None:
        self.visitor = visitor
        self.expressions = ExpressionWalk(visitor.expressions)
        self._schemas: dict[int, int] = {}

    def schema(self, schema: Struct) -> int:
        """The id of a field list for a schema; the plan keeps it alive, so its id is a key."""
        found = self._schemas.get(id(schema))
        if found is None:
            found = self._schemas[id(schema)] = visit_schema(schema, self.visitor.schemas)
        return found

    # The sink of `walk`.

    def make_list(self, reserve: int) -> int:
        """A new list of plans."""
        return self.visitor.make_plan_list(reserve)

    def is_worth_sharing(self, node: Plan) -> bool:
        """Every node: a source that is read twice costs twice."""
        del node
        return True

    def is_leaf(self, node: Plan) -> bool:
        """Sources without an input."""
        return type(node) in LEAVES

    def share(self, siblings: int, shared: int) -> None:
        """A reference to a plan that was visited before."""
        self.visitor.visit_shared(siblings, shared)

    def visit(self, node: Plan, siblings: int, children: int) -> None:
        """One node."""
        visit = NODE_VISITS.get(type(node))
        # Of a scan the engine is also told under which names files hold the columns.
        scans = (sources.Scan, sources.DynamicScan)
        columns = node.columns if isinstance(node, scans) else node.schema
        head = (siblings, self.schema(columns))
        if visit is None:
            self.visitor.visit_unknown(*head, node.kind, node, children)
        elif self.is_leaf(node):
            visit(self, node, *head)
        else:
            visit(self, node, *head, children)


def _list_files(drive: PlanWalk, node: sources.ListFiles, to: int, columns: int) -> None:
    drive.visitor.visit_list_files(to, columns, node.path, node.start_from)


def _scan(drive: PlanWalk, node: sources.Scan, to: int, columns: int) -> None:
    types = [node.columns.field(name).type for name in node.constants]
    files = drive.visitor.make_file_list(len(node.files))
    none = drive.expressions.many(())
    for file in node.files:
        values = [literal(v, t) for v, t in zip(file.constants, types, strict=True)]
        constants = drive.expressions.many(values) if values else none
        drive.visitor.visit_file(files, file.path, file.size, file.rows, constants)
    csv = node.csv or sources.CsvOptions()
    options = (csv.delimiter, csv.quote, csv.has_header, node.strict, node.on_error)
    drive.visitor.visit_scan(to, columns, node.format, files, node.constants, *options)


def _dynamic_scan(drive: PlanWalk, node: sources.DynamicScan, to: int, cols: int, on: int) -> None:
    drive.visitor.visit_dynamic_scan(
        to, cols, node.format, node.path_column, node.constants, node.deleted, node.on_error, on
    )


def _filter(drive: PlanWalk, node: rows.Filter, to: int, columns: int, on: int) -> None:
    drive.visitor.visit_filter(to, columns, drive.expressions.one(node.predicate), on)


def _filter_ordered(drive: PlanWalk, node: rows.FilterOrdered, to: int, cols: int, on: int) -> None:
    kept = node.row_filter
    drive.visitor.visit_filter_ordered(to, cols, kept.name, tuple(kept.columns), kept, on)


def _project(drive: PlanWalk, node: rows.Project, to: int, columns: int, on: int) -> None:
    drive.visitor.visit_project(to, columns, drive.expressions.named(node.columns), on)


def _parse_json(drive: PlanWalk, node: rows.ParseJson, to: int, columns: int, on: int) -> None:
    parsed = drive.schema(node.parsed)
    drive.visitor.visit_parse_json(to, columns, node.column, parsed, node.output, on)


def _join(drive: PlanWalk, node: rows.Join, to: int, columns: int, on: int) -> None:
    left = drive.expressions.many([key for key, _ in node.keys])
    right = drive.expressions.many([key for _, key in node.keys])
    drive.visitor.visit_join(to, columns, node.how, left, right, node.nulls_equal, on)


def _aggregate(drive: PlanWalk, node: rows.Aggregate, to: int, columns: int, on: int) -> None:
    keys, measures = drive.expressions.named(node.keys), drive.expressions.measures(node.measures)
    drive.visitor.visit_aggregate(to, columns, keys, measures, on)


def _sort(drive: PlanWalk, node: order.Sort, to: int, columns: int, on: int) -> None:
    drive.visitor.visit_sort(to, columns, drive.expressions.sort_keys(node.keys), on)


def _top_k(drive: PlanWalk, node: order.TopK, to: int, columns: int, on: int) -> None:
    drive.visitor.visit_top_k(to, columns, node.n, drive.expressions.sort_keys(node.keys), on)


def _sample(drive: PlanWalk, node: order.Sample, to: int, columns: int, on: int) -> None:
    drive.visitor.visit_sample(to, columns, node.seed, node.n, node.fraction, on)


def _stateful(
    drive: PlanWalk, node: streams.StatefulFunction, to: int, columns: int, on: int
) -> None:
    mappings = drive.expressions.mappings(node.mappings)
    drive.visitor.visit_stateful_function(to, columns, mappings, on)


def _window(drive: PlanWalk, node: streams.Window, to: int, columns: int, on: int) -> None:
    drive.visitor.visit_window(to, columns, drive.expressions.window_calls(node.calls), on)


LEAVES: Final = (sources.ListFiles, sources.Scan, sources.Values, sources.Stored)

NODE_VISITS: Final[Mapping[type[Plan], Callable[..., None]]] = {
    sources.ListFiles: _list_files,
    sources.Scan: _scan,
    sources.DynamicScan: _dynamic_scan,
    sources.Values: lambda drive, node, *head: drive.visitor.visit_values(*head, node.data),
    sources.Stored: lambda drive, node, *head: drive.visitor.visit_stored(*head, node.path),
    rows.Filter: _filter,
    rows.FilterOrdered: _filter_ordered,
    rows.Project: _project,
    rows.ParseJson: _parse_json,
    rows.Union: lambda drive, _, *ids: drive.visitor.visit_union(*ids),
    rows.Join: _join,
    rows.Aggregate: _aggregate,
    order.Sort: _sort,
    order.TopK: _top_k,
    order.Head: lambda drive, n, to, cols, on: drive.visitor.visit_head(to, cols, n.n, on),
    order.Tail: lambda drive, n, to, cols, on: drive.visitor.visit_tail(to, cols, n.n, on),
    order.Take: lambda drive, n, to, cols, on: drive.visitor.visit_take(to, cols, n.indices, on),
    order.Sample: _sample,
    order.Shuffle: lambda drive, n, to, cols, on: drive.visitor.visit_shuffle(to, cols, n.seed, on),
    streams.StatefulFunction: _stateful,
    streams.Window: _window,
    streams.Sql: lambda drive, n, to, cols, on: drive.visitor.visit_sql(
        to, cols, n.text, n.names, on
    ),
}
"""How each kind of node is visited."""
