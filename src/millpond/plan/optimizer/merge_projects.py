"""One projection instead of two, and none where it changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.bound import BoundLiteral, BoundNamed, BoundPath
from millpond.plan.optimizer.sharing import rebuilt, shared_nodes
from millpond.plan.optimizer.substitute import definitions, is_column, substitute
from millpond.plan.rows import Project
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.bound import BoundExpr
    from millpond.plan.node import Plan


def merge_projects(plan: Plan) -> Plan:
    """A projection of a projection becomes one where no work is repeated by that.

    >>> from millpond.plan.expr import col
    >>> from millpond.plan.make import values
    >>> plan = values([{"a": 1, "b": 2}]).select(x=col("a") + 1, y=col("b")).select("y", "x")
    >>> print(merge_projects(plan))
    #0 Values [1 rows] (a: long, b: long)
    #1 Project #0 y := b, x := (a + 1)
    """
    order = topological(plan)
    shared = shared_nodes(order)
    built: dict[int, Plan] = {}
    for node in order:
        now = rebuilt(node, built)
        if isinstance(now, Project):
            now = _merge(now, lower_is_shared=id(node.children[0]) in shared)
        built[id(node)] = now
    return built[id(plan)]


def _merge(upper: Project, *, lower_is_shared: bool) -> Plan:
    if _changes_nothing(upper):
        return upper.input
    lower = upper.input
    if not isinstance(lower, Project) or lower_is_shared:
        return upper
    columns = _merged_columns(upper, lower)
    if columns is None:
        return upper
    merged = Project(lower.input, columns)
    return lower.input if _changes_nothing(merged) else merged


def _changes_nothing(project: Project) -> bool:
    # Projecting forgets which columns are never null, so the schemas are compared, too.
    return project.schema == project.input.schema and all(
        is_column(column.expr) and _named_alike(column) for column in project.columns
    )


def _named_alike(column: BoundNamed) -> bool:
    assert isinstance(column.expr, BoundPath)
    return getattr(column.expr.steps[0], "name", None) == column.name


def _merged_columns(upper: Project, lower: Project) -> tuple[BoundNamed, ...] | None:
    given = definitions(lower)
    taken: set[str] = set()
    merged = []
    for column in upper.columns:
        expr: BoundExpr | None
        if is_column(column.expr):
            assert isinstance(column.expr, BoundPath)
            name = getattr(column.expr.steps[0], "name", "")
            expr = given[name]
            if not isinstance(expr, BoundPath | BoundLiteral):
                if name in taken:
                    return None
                taken.add(name)
        else:
            expr = substitute(column.expr, given)
        if expr is None:
            return None
        merged.append(BoundNamed(column.name, expr))
    return tuple(merged)
