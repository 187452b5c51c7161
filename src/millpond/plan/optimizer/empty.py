"""A plan without rows, of a given schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.plan.arrow import to_arrow_schema
from millpond.plan.sources import Values

if TYPE_CHECKING:
    from millpond.plan.node import Plan


def empty_like(plan: Plan) -> Plan | None:
    """No rows, in memory; None where Arrow can't carry the schema (metadata, variants).

    >>> from millpond.plan.make import values
    >>> print(empty_like(values([{"a": 1}])))
    #0 Values [0 rows] (a: long)
    """
    empty = Values(to_arrow_schema(plan.schema).empty_table())
    return empty if empty.schema == plan.schema else None


def is_empty(plan: Plan) -> bool:
    """Whether a plan is rows in memory, and none."""
    return isinstance(plan, Values) and plan.data.num_rows == 0
