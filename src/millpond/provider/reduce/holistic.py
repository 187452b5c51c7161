"""Aggregates that look at all rows of a bucket at once: median, percentiles, standard deviation.

They can't be merged from parts, so they are asked of Spark, over the rows of the buckets that are
wanted and nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from millpond.plan.streams import Sql
from millpond.plan.types import DOUBLE, TIMESTAMP_NTZ, Field, Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.plan.node import Plan
    from millpond.provider.reduce.measures import Wanted

HOLISTIC: Final = ("median", "stddev", "variance")
_PERCENTILE: Final = re.compile(r"p(100|[0-9]{1,2}(?:\.[0-9]+)?)")


def is_holistic(kind: str) -> bool:
    """Whether an aggregate is of this kind.

    >>> is_holistic("p95"), is_holistic("p99.9"), is_holistic("p101"), is_holistic("avg")
    (True, True, False, False)
    """
    return kind in HOLISTIC or _PERCENTILE.fullmatch(kind) is not None


def holistic(found: Plan, rows: Plan, wanted: Sequence[Wanted], *, time: str, width: int) -> Plan:
    """A plan of buckets with more columns."""
    columns = [Field(each.name, DOUBLE) for each in wanted]
    named = [
        f"{_expression(each.kind, quoted(each.column))} AS {quoted(each.name)}" for each in wanted
    ]
    is_local = found.schema.field(time).type == TIMESTAMP_NTZ
    micros = f"unix_micros(CAST({quoted(time)} AS TIMESTAMP))"
    bucket = f"timestamp_micros({micros} - pmod({micros}, {width}))"
    if is_local:
        bucket = f"CAST({bucket} AS TIMESTAMP_NTZ)"
    text = (
        f"SELECT {bucket} AS {quoted(time)}, {', '.join(named)} FROM source "
        f"WHERE {quoted(time)} IS NOT NULL GROUP BY 1"
    )
    made = Sql(text, ("source",), (rows,), Struct((found.schema.field(time), *columns)))
    return found.join(made, on=time, how="left")


def _expression(kind: str, column: str) -> str:
    if kind == "stddev":
        return f"stddev_samp({column})"
    if kind == "variance":
        return f"var_samp({column})"
    share = 0.5 if kind == "median" else float(kind[1:]) / 100
    return f"percentile({column}, {share}D)"


def quoted(name: str) -> str:
    """A name as Spark's SQL has it, whatever is in it."""
    return f'"{name.replace(chr(34), chr(34) * 2)}"'
