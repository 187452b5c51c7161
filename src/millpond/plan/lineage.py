"""Where a column of a plan comes from: through filters, and through projections that rename it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.bound import BoundPath
from millpond.plan.paths import Name
from millpond.plan.rows import Filter, Project

if TYPE_CHECKING:
    from millpond.plan.node import Plan


def source_column(plan: Plan, name: str, source: Plan) -> str | None:
    """Which column of a source a column of a plan over it is; None if it is computed.

    >>> import millpond as mp
    >>> rows = mp.values([{"at": 1, "x": 2}])
    >>> plan = rows.filter(mp.col("x") > 1)
    >>> plan = plan.select(mp.col("at").alias("time"), (mp.col("x") + 1).alias("x"))
    >>> source_column(plan, "time", rows), source_column(plan, "x", rows)
    ('at', None)
    """
    while plan is not source and isinstance(plan, Filter | Project):
        if isinstance(plan, Project):
            found = next((each.expr for each in plan.columns if each.name == name), None)
            steps = found.steps if isinstance(found, BoundPath) else ()
            match steps:
                case (Name(name=below),):
                    name = below
                case _:
                    return None
        plan = plan.input
    return name if plan is source else None
