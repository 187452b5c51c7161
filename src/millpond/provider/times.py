"""The time of computed series: which column it is, and rows of a range of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.base.errors import SchemaError
from millpond.plan.expr import col, lit
from millpond.plan.types import TIMESTAMP, TIMESTAMP_NTZ

if TYPE_CHECKING:
    from datetime import datetime

    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan
    from millpond.plan.types import Struct
    from millpond.provider.rows import Asked

TIME_COLUMNS: Final = ("timestamp", "Timestamp", "event_time", "time", "ts", "datetime")
"""Where the time of a series is looked for, unless it is said."""


def time_column(schema: Struct, declared: str | None, *, path: str) -> str:
    """The column with the time of a series."""
    times = [field.name for field in schema if field.type in (TIMESTAMP, TIMESTAMP_NTZ)]
    if declared is not None:
        if declared not in times:
            raise SchemaError(
                f"{path}: {declared!r} is no column with a timestamp",
                hint=f"such columns are: {', '.join(times) or 'none'}",
            )
        return declared
    for name in TIME_COLUMNS:
        if name in times:
            return name
    raise SchemaError(
        f"{path}: a series needs a column with its time, and none of {', '.join(TIME_COLUMNS)} "
        "is a timestamp",
        hint=f"say which one it is: time_column={times[0]!r}"
        if times
        else "add a timestamp, or write it as a table",
    )


def in_range(plan: Plan, column: str, asked: Asked) -> Plan:
    """The rows of a range of times; both ends belong to it."""
    found = conditions(plan.schema, column, asked)
    return plan.filter(*found) if found else plan


def conditions(schema: Struct, column: str, asked: Asked) -> list[Expr]:
    """What rows of a range of times satisfy; one for each end that it has."""
    found: list[Expr] = []
    is_local = schema.field(column).type == TIMESTAMP_NTZ
    if asked.start is not None:
        found.append(col(column) >= moment(asked.start, is_local=is_local))
    if asked.end is not None:
        found.append(col(column) <= moment(asked.end, is_local=is_local))
    return found


def moment(micros: int, *, is_local: bool = False) -> Expr:
    """A time as a literal, of the type of the column that it is compared with."""
    from millpond.fs.entry import from_micros

    time: datetime = from_micros(micros)
    return lit(time.replace(tzinfo=None) if is_local else time)
