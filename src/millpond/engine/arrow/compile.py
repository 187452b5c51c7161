"""From a plan to operators, without recursion and without opening anything.

A node becomes an operator over its inputs. Filters and a projection right above a scan become one
operator with it; positions and top-k right above a Parquet scan read only the row groups they need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from millpond.base.errors import UnsupportedNodeError
from millpond.engine.arrow.aggregate import Group, text_column
from millpond.engine.arrow.join import JoinRows
from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.positions import Last, LastOfParquet, Pick, PickOfParquet
from millpond.engine.arrow.rows import Chain, Compute, First, Keep, KeepOrdered, Memory, Parse
from millpond.engine.arrow.sample import SampleFraction, SampleRows
from millpond.engine.arrow.sort import ShuffleRows, SortByKeys
from millpond.engine.arrow.source.files import ENGINE
from millpond.engine.arrow.source.listing import List
from millpond.engine.arrow.source.named import KeepFiles, OverNamed, ScanNamed
from millpond.engine.arrow.source.scan import ScanFiles, entries_of
from millpond.engine.arrow.source.spec import ScanSpec, spec_of
from millpond.engine.arrow.stateful import CallStateful
from millpond.engine.arrow.topk import TopOfParquet, TopRows
from millpond.plan import order as o
from millpond.plan import rows as r
from millpond.plan import sources as s
from millpond.plan import streams as st
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.source.entry import Entry
    from millpond.engine.arrow.source.named import OverFiles
    from millpond.plan.node import Plan

Make: TypeAlias = Callable[[list[Operator]], Operator]
Lowered: TypeAlias = "tuple[tuple[Plan, ...], Make]"
"""A node's inputs, and how its operator is made of theirs."""


def compile_plan(plan: Plan, context: Context) -> Operator:
    """The operator that gives the plan's rows. A node that is used twice runs twice."""
    nodes = list(topological(plan))
    numbers = {id(node): number for number, node in enumerate(nodes)}
    context.stops_early = any(isinstance(node, o.Head) for node in nodes)
    made: list[Operator] = []
    todo: list[tuple[Plan, Make | None, int]] = [(plan, None, 0)]
    while todo:
        node, make, count = todo.pop()
        if make is None:
            inputs, make = _lower(node, numbers, context)
            todo.append((node, make, len(inputs)))
            todo.extend((child, None, 0) for child in reversed(inputs))
        else:
            sources = made[len(made) - count :]
            del made[len(made) - count :]
            operator = make(sources)
            operator.node = numbers[id(node)]
            made.append(operator)
    return made[0]


def _lower(node: Plan, numbers: Mapping[int, int], context: Context) -> Lowered:
    special = _over_parquet(node, numbers, context) or _group_of_parquet(node, numbers, context)
    if special is not None:
        return special
    fused = fuse(node, numbers)
    if fused is not None:
        return _rows_of(*fused, numbers, context)
    if isinstance(node, r.Filter) and isinstance(node.input, s.Scan):
        return (), lambda _: _keep_of_text(node, numbers, context)
    return node.children, lambda below: _operator(node, below, context)


def _rows_of(
    scan: s.Scan | s.DynamicScan, spec: ScanSpec, numbers: Mapping[int, int], context: Context
) -> Lowered:
    """The rows of files, one after the other."""
    if isinstance(scan, s.Scan):
        return (), lambda _: ScanFiles(spec, entries_of(scan), context)
    below, names = _names_of(scan, numbers, context)
    return (below,), lambda sources: ScanNamed(spec, scan, names(sources[0]), context)


def _over_files(
    make: OverFiles, scan: s.Scan | s.DynamicScan, numbers: Mapping[int, int], context: Context
) -> Lowered:
    """An operator that looks at all files of a scan before it reads them."""
    if isinstance(scan, s.Scan):
        return (), lambda _: make(entries_of(scan))
    below, names = _names_of(scan, numbers, context)
    return (below,), lambda sources: OverNamed(make, scan, names(sources[0]))


def _names_of(
    scan: s.DynamicScan, numbers: Mapping[int, int], context: Context
) -> tuple[Plan, Callable[[Operator], Operator]]:
    """What names the files of a scan; files that a filter there drops are counted as pruned."""
    kept = scan.input
    if not isinstance(kept, r.Filter) or fuse(kept, numbers) is not None:
        return kept, lambda below: below

    def make(below: Operator) -> Operator:
        operator = KeepFiles(below, kept.predicate, context)
        operator.node = numbers[id(kept)]
        return operator

    return kept.input, make


def _keep_of_text(node: r.Filter, numbers: Mapping[int, int], context: Context) -> Operator:
    """A filter over text files: those whose constants rule them out are not opened, and JSON files
    that lack the members that it is about are not parsed."""
    scan = node.input
    assert isinstance(scan, s.Scan)
    source = ScanFiles(
        spec_of(scan, [(node.predicate, None)], None, None), entries_of(scan), context
    )
    source.node = numbers[id(scan)]
    return Keep(source, node.predicate)


def fuse(node: Plan, numbers: Mapping[int, int]) -> tuple[s.Scan | s.DynamicScan, ScanSpec] | None:
    """A scan with the filters and the projection above it, if that is what the node is."""
    project = node.columns if isinstance(node, r.Project) else None
    below = node.input if isinstance(node, r.Project) else node
    filters: list[r.Filter] = []
    while isinstance(below, r.Filter):
        filters.append(below)
        below = below.input
    if not isinstance(below, s.Scan | s.DynamicScan):
        return None
    if below.format != "parquet" and below is not node:
        return None  # text is read as a whole: nothing could be decoded later
    # The operator itself counts what the topmost node gives.
    own = [(f.predicate, None if f is node else numbers[id(f)]) for f in reversed(filters)]
    return below, spec_of(below, own, project, None if below is node else numbers[id(below)])


def _over_parquet(node: Plan, numbers: Mapping[int, int], context: Context) -> Lowered | None:
    """Operators that read a Parquet scan by row group instead of taking its rows as they come."""
    if not isinstance(node, o.Tail | o.Take | o.TopK):
        return None
    fused = fuse(node.input, numbers)
    if fused is None:
        return None
    scan, spec = fused
    if scan.format != "parquet":
        return None
    spec = replace(spec, scan_node=numbers[id(scan)])

    def make(entries: Sequence[Entry]) -> Operator:
        if isinstance(node, o.Tail):
            return LastOfParquet(spec, entries, node.n, context)
        if isinstance(node, o.Take):
            return PickOfParquet(spec, entries, node.indices, context)
        return TopOfParquet(spec, entries, node.keys, node.n, context)

    if isinstance(node, o.Take):
        has_deleted = isinstance(scan, s.DynamicScan) and scan.deleted is not None
        if spec.conditions or has_deleted:  # then footers do not tell where a row is
            return None
    if isinstance(node, o.TopK) and node.n > context.buffer_rows(node.schema):
        return None
    return _over_files(make, scan, numbers, context)


def _group_of_parquet(node: Plan, numbers: Mapping[int, int], context: Context) -> Lowered | None:
    """Groups of a Parquet scan: texts that repeat are grouped by their numbers in the file."""
    if not isinstance(node, r.Aggregate):
        return None
    names = frozenset(filter(None, (text_column(key.expr) for key in node.keys)))
    fused = fuse(node.input, numbers) if names else None
    if fused is None or fused[1].project is not None:
        return None
    scan, spec = fused
    if scan.format != "parquet":
        return None
    below, rows = _rows_of(scan, replace(spec, texts=names), numbers, context)

    def make(sources: list[Operator]) -> Operator:
        source = rows(sources)
        source.node = numbers[id(node.input)]
        return Group(source, node, context)

    return below, make


def _operator(node: Plan, below: list[Operator], context: Context) -> Operator:
    made = _OPERATORS.get(type(node))
    if made is None:
        raise UnsupportedNodeError(node.kind, ENGINE)
    return made(node, below, context)


def _top(node: o.TopK, below: list[Operator], context: Context) -> Operator:
    if node.n <= context.buffer_rows(node.schema):
        return TopRows(below[0], node.keys, node.n, context)
    return First(SortByKeys(below[0], node.keys, node.schema, context), node.n)


def _sample(node: o.Sample, below: list[Operator], context: Context) -> Operator:
    if node.fraction is not None:
        return SampleFraction(below[0], node.seed, node.fraction)
    assert node.n is not None
    return SampleRows(below[0], node.seed, node.n, context)


_OPERATORS: Mapping[type[Plan], Callable[[Any, list[Operator], Context], Operator]] = {
    s.Values: lambda node, _, context: Memory(node.data, context),
    s.ListFiles: lambda node, _, context: List(node, context),
    r.Filter: lambda node, below, _: Keep(below[0], node.predicate),
    r.FilterOrdered: lambda node, below, _: KeepOrdered(below[0], node),
    r.Project: lambda node, below, _: Compute(below[0], node),
    r.ParseJson: lambda node, below, _: Parse(below[0], node),
    r.Union: lambda node, below, _: Chain(below, node.schema),
    r.Join: lambda node, below, context: JoinRows(below[0], below[1], node, context),
    r.Aggregate: lambda node, below, context: Group(below[0], node, context),
    o.Sort: lambda node, below, c: SortByKeys(below[0], node.keys, node.schema, c),
    o.Shuffle: lambda node, below, c: ShuffleRows(below[0], node.seed, node.schema, c),
    o.TopK: _top,
    o.Head: lambda node, below, _: First(below[0], node.n),
    o.Tail: lambda node, below, context: Last(below[0], node.n, context),
    o.Take: lambda node, below, context: Pick(below[0], node.indices, context),
    o.Sample: _sample,
    st.StatefulFunction: lambda node, below, _: CallStateful(below[0], node),
}

_RUN: tuple[type[Plan], ...] = (*_OPERATORS, s.Scan, s.DynamicScan)
NODES = frozenset(node.kind for node in _RUN)
"""What this engine runs; scans are made in `fuse`."""
