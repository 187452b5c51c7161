"""Through which nodes a predicate passes, and what it becomes below them.

`passage(node)` gives a function from a predicate over the node's rows to predicates over its
inputs' rows (by the input's number), or None where nothing passes at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from millpond.plan.bound import BoundPath, row_paths
from millpond.plan.optimizer.substitute import column_name, definitions, substitute
from millpond.plan.order import Sort
from millpond.plan.raising import can_raise
from millpond.plan.rows import Aggregate, Join, ParseJson, Project, Union
from millpond.plan.sources import DynamicScan
from millpond.plan.streams import Window
from millpond.plan.types import is_fractional

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millpond.plan.bound import BoundExpr
    from millpond.plan.node import Plan
    from millpond.plan.paths import Step

Passage: TypeAlias = "Callable[[BoundExpr], Mapping[int, BoundExpr] | None]"


def passage(node: Plan) -> Passage | None:
    """How predicates pass this node. Whatever chooses rows by position lets nothing through."""
    if isinstance(node, Project):
        return _through_project(node)
    if isinstance(node, Sort):
        return lambda part: {0: part}
    if isinstance(node, ParseJson):
        output = node.output
        return lambda part: None if output in _columns(part) else {0: part}
    if isinstance(node, Union):
        return lambda part: dict.fromkeys(range(len(node.members)), part)
    if isinstance(node, Join):
        return _through_join(node)
    if isinstance(node, Aggregate) and node.keys:
        return _through_groups(node)
    if isinstance(node, Window):
        return _through_window(node)
    if isinstance(node, DynamicScan) and node.constants:
        return _through_files(node)
    return None


def _columns(part: BoundExpr) -> set[str]:
    return {column_name(path) for path in row_paths(part)}


def _through_project(node: Project) -> Passage:
    given = definitions(node)

    def through(part: BoundExpr) -> Mapping[int, BoundExpr] | None:
        moved = substitute(part, given)
        return None if moved is None else {0: moved}

    return through


def _through_join(node: Join) -> Passage | None:
    if node.how == "full":
        return None
    left, right = set(node.left.schema.names), set(node.right.schema.names)

    def through(part: BoundExpr) -> Mapping[int, BoundExpr] | None:
        # A left join shows every left row; the others drop rows that below would be seen again.
        if node.how != "left" and can_raise(part):
            return None
        columns = _columns(part)
        if columns <= left:
            return {0: part}
        return {1: part} if node.how == "inner" and columns <= right else None

    return through


def _through_groups(node: Aggregate) -> Passage:
    keys = {key.name: key.expr for key in node.keys}

    def through(part: BoundExpr) -> Mapping[int, BoundExpr] | None:
        columns = _columns(part)
        if not columns or not columns <= keys.keys() or _looks_at_fractions(part):
            return None
        moved = substitute(part, keys)
        return None if moved is None else {0: moved}

    return through


def _through_window(node: Window) -> Passage:
    keys = [_paths_of(call.partition_by) for call in node.calls]

    def through(part: BoundExpr) -> Mapping[int, BoundExpr] | None:
        wanted = {path.steps for path in row_paths(part)}
        if not wanted or _looks_at_fractions(part):
            return None
        return {0: part} if all(wanted <= known for known in keys) else None

    return through


def _through_files(node: DynamicScan) -> Passage:
    constants = set(node.constants)

    def through(part: BoundExpr) -> Mapping[int, BoundExpr] | None:
        # Below, it also sees files without rows.
        columns = _columns(part)
        passes = columns and columns <= constants and not can_raise(part)
        return {0: part} if passes else None

    return through


def _paths_of(exprs: tuple[BoundExpr, ...]) -> set[tuple[Step, ...]]:
    return {expr.steps for expr in exprs if isinstance(expr, BoundPath)}


def _looks_at_fractions(part: BoundExpr) -> bool:
    """0.0 and -0.0 are one key, but a predicate over the rows can tell them apart."""
    return any(is_fractional(path.type) for path in row_paths(part))
