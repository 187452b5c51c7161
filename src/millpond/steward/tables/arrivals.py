"""Rows on their way into a pond: what they are, whatever they come in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.base.errors import PathTypeError
from millpond.plan.node import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from millpond.plan.executor import Executor
    from millpond.plan.types import Struct


@dataclass(frozen=True, slots=True)
class Arrival:
    """Rows that can be written, and their columns."""

    schema: Struct
    data: Any


def arrival(rows: Any, *, path: str, engine_for: Callable[[Plan], str | Executor]) -> Arrival:
    """A plan, a handle, a DataFrame of Spark or pandas, Arrow, dictionaries."""
    import pyarrow as pa

    from millpond.plan.arrow import from_arrow_schema
    from millpond.plan.make import values

    if isinstance(rows, Plan):
        # The engine of the table would read rows; that of the plan may have to be another.
        return Arrival(rows.schema, _executed(rows, engine_for))
    if type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns"):
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if hasattr(rows, "toArrow"):  # a DataFrame of Spark
        rows = rows.toArrow()
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return Arrival(from_arrow_schema(rows.schema), rows)
    if hasattr(rows, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(rows)
        return Arrival(from_arrow_schema(reader.schema), reader)
    if isinstance(rows, list | tuple):
        plan = values(list(rows))
        return Arrival(plan.schema, plan)
    raise PathTypeError(
        f"a {type(rows).__name__} has no rows that could be written to {path}",
        path=path,
        hint="give an Arrow table, a DataFrame, a plan, or a list of dictionaries",
    )


def _executed(plan: Plan, engine_for: Callable[[Plan], str | Executor]) -> Iterator[pa.RecordBatch]:
    """The rows of a plan; it begins when they are asked for."""
    with plan.execute(engine=engine_for(plan)) as run:
        yield from run
