"""Which column statistics hold for the rows of each node, as far as scans bring them along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from millpond.plan.bound import BoundPath
from millpond.plan.order import Head, Sample, Shuffle, Sort, Tail, Take, TopK
from millpond.plan.paths import format_path
from millpond.plan.rows import Filter, FilterOrdered, ParseJson, Project
from millpond.plan.sources import ColumnStats, Scan
from millpond.plan.streams import StatefulFunction, Window
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.node import Plan

Statistics: TypeAlias = Mapping[str, ColumnStats]
"""What is known about columns, by path text."""

NOTHING: Final[Statistics] = {}

# Their rows are rows of their input, so what holds for all of those holds for them.
_KEEPS = (Filter, FilterOrdered, Sort, TopK, Head, Tail, Take, Sample, Shuffle)
_ADDS = (ParseJson, Window, StatefulFunction)


def node_statistics(plan: Plan) -> dict[int, Statistics]:
    """The statistics of every node's rows, by the node's id."""
    known: dict[int, Statistics] = {}
    for node in topological(plan):
        if isinstance(node, Scan):
            known[id(node)] = {stats.path: stats for stats in node.stats}
        elif isinstance(node, (*_KEEPS, *_ADDS)):
            known[id(node)] = known[id(node.input)]
        elif isinstance(node, Project):
            known[id(node)] = _renamed(node, known[id(node.input)])
        else:
            known[id(node)] = NOTHING
    return known


def _renamed(node: Project, given: Statistics) -> Statistics:
    if not given:
        return NOTHING
    found: dict[str, ColumnStats] = {}
    for column in node.columns:
        if not isinstance(column.expr, BoundPath):
            continue
        source = format_path(column.expr.steps)
        for path, stats in given.items():
            if path == source or path.startswith(source + "."):
                name = column.name + path.removeprefix(source)
                found[name] = replace(stats, path=name)
    return found
