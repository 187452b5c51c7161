"""Partial aggregates: what is kept for a bucket of time so that any two can be merged into one.

`partial` makes them from rows, `merged` makes one of many, `finished` makes of them what was asked
for. Merging partials of any pieces, in any grouping, gives what one GROUP BY over all rows gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from millpond.plan import aggregates as agg
from millpond.plan.expr import col
from millpond.plan.types import DOUBLE, is_numeric, is_orderable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.expr import Expr, Named
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct

MERGEABLE: Final = ("avg", "min", "max", "count", "sum", "first", "last")
BUCKET: Final = "bucket"


@dataclass(frozen=True, slots=True, order=True)
class Wanted:
    """A column of the outcome: `Wanted("temperature", "avg")` is `temperature.avg`."""

    column: str
    kind: str

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.column}.{self.kind}"


def can_measure(kind: str, column: str, schema: Struct) -> bool:
    """Whether a column can be aggregated like that."""
    type_ = schema.field(column).type
    if kind in ("count", "first", "last"):
        return True
    return is_orderable(type_) if kind in ("min", "max") else is_numeric(type_)


def _parts(wanted: Sequence[Wanted]) -> dict[str, tuple[str, str]]:
    """The partial aggregates that are needed: what and of which column, by their names."""
    found: dict[str, tuple[str, str]] = {}
    for each in wanted:
        kinds = {
            "avg": ("sum", "count"),
            "first": ("first", "first_at"),
            "last": ("last", "last_at"),
        }
        for kind in kinds.get(each.kind, (each.kind,)):
            found[f"{kind}:{each.column}"] = (kind, each.column)
    return dict(sorted(found.items()))


def partial(plan: Plan, wanted: Sequence[Wanted], *, time: str, width: int) -> Plan:
    """One row for each bucket of some rows; rows without a time are in none."""
    has_order = any(each.kind in ("first", "last") for each in wanted)
    plan = plan.filter(col(time).is_not_null())
    if has_order:
        plan = plan.sort(time)
    measures = {}
    for name, (kind, column) in _parts(wanted).items():
        there = col(column).is_not_null()
        if kind in ("first_at", "last_at"):
            measure = agg.min if kind == "first_at" else agg.max
            measures[name] = measure(time, where=there)
        elif kind in ("first", "last"):
            measures[name] = getattr(agg, kind)(column, where=there)
        else:
            measures[name] = getattr(agg, kind)(column)
    key = col(time).time_bucket(_width(width)).alias(BUCKET)
    return plan.aggregate(key, **measures)


def merged(plan: Plan, wanted: Sequence[Wanted], *, width: int | None = None) -> Plan:
    """One row for each bucket; with a width, buckets become as wide as that."""
    parts = _parts(wanted)
    measures: dict[str, agg.Measure] = {}
    for name, (kind, _) in parts.items():
        if kind in ("sum", "count"):
            measures[name] = agg.sum(name)
        elif kind in ("min", "first_at"):
            measures[name] = agg.min(name)
        elif kind in ("max", "last_at"):
            measures[name] = agg.max(name)
    bucket = col(BUCKET) if width is None else col(BUCKET).time_bucket(_width(width))
    found = plan.aggregate(bucket.alias(BUCKET), **measures)
    for name, (kind, column) in parts.items():
        if kind in ("first", "last"):
            found = _with_ends(found, plan, name, f"{kind}_at:{column}", kind, bucket)
    return found.select(BUCKET, *parts)


def _with_ends(found: Plan, plan: Plan, name: str, at: str, kind: str, bucket: Expr) -> Plan:
    """The value that goes with the first or last time: partials in the order of that time."""
    ends = plan.filter(col(at).is_not_null()).sort(at)
    measure = agg.first(name) if kind == "first" else agg.last(name)
    values = ends.aggregate(bucket.alias(BUCKET), **{name: measure})
    return found.join(values, on=BUCKET, how="left")


def finished(plan: Plan, wanted: Sequence[Wanted], *, time: str) -> Plan:
    """What was asked for, by the start of each bucket."""
    columns: list[Named] = [col(BUCKET).alias(time)]
    for each in wanted:
        if each.kind == "avg":
            total, count = col(f"sum:{each.column}"), col(f"count:{each.column}")
            value = total.cast(DOUBLE) / count.cast(DOUBLE)
        else:
            value = col(f"{each.kind}:{each.column}")
        columns.append(value.alias(each.name))
    return plan.select(*columns)


def _width(micros: int) -> timedelta:
    return timedelta(microseconds=micros)
