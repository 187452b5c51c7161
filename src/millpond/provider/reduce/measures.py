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
    from collections.abc import Mapping, Sequence

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
    plan = plan.filter(col(time).is_not_null())
    parts, bucket = _parts(wanted), col(time).time_bucket(_width(width))
    measures: dict[str, agg.Measure] = {}
    for name, (kind, column) in parts.items():
        if kind in ("first_at", "last_at"):
            measure = agg.min if kind == "first_at" else agg.max
            measures[name] = measure(time, where=col(column).is_not_null())
        elif kind not in ("first", "last"):
            measures[name] = getattr(agg, kind)(column)
    found = plan.aggregate(bucket.alias(BUCKET), **measures)
    for end in ("first", "last"):
        ends = {name: column for name, (kind, column) in parts.items() if kind == end}
        if ends:
            found = found.join(_ends(plan, ends, end, time, bucket), on=BUCKET, how="left")
    return found.select(BUCKET, *parts)


def _ends(plan: Plan, columns: Mapping[str, str], end: str, at: str, bucket: Expr) -> Plan:
    """Return the first or last value of each bucket by the time `at`.

    Of several values of that time the last row counts, whichever end is wanted: it is the newest.
    """
    ordered = plan.sort(col(at).desc() if end == "first" else col(at))
    measures = {
        name: agg.last(column, where=col(column).is_not_null()) for name, column in columns.items()
    }
    return ordered.aggregate(bucket.alias(BUCKET), **measures)


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
            at = f"{kind}_at:{column}"
            dated = plan.filter(col(at).is_not_null())
            found = found.join(_ends(dated, {name: name}, kind, at, bucket), on=BUCKET, how="left")
    return found.select(BUCKET, *parts)


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
