"""Rows on their way into a pond: what they are, whatever they come in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.base.errors import PathTypeError, SchemaError
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
    """Return rows that are a plan, a handle, a frame, Arrow, or dictionaries."""
    import pyarrow as pa

    from millpond.plan.arrow import conform, from_arrow_schema
    from millpond.plan.frames import check_polars, is_pandas_frame, table_of_pandas
    from millpond.plan.make import values

    if isinstance(rows, Plan):
        # The engine of the table would read rows; that of the plan may have to be another.
        return Arrival(rows.schema, _executed(rows, engine_for))
    if is_pandas_frame(rows):
        rows = table_of_pandas(rows)
        schema = from_arrow_schema(rows.schema)
        return Arrival(schema, conform(rows, schema))
    check_polars(rows)
    if hasattr(rows, "toArrow"):  # a DataFrame of Spark
        rows = rows.toArrow()
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return Arrival(from_arrow_schema(rows.schema), rows)
    if hasattr(rows, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(rows)
        except pa.ArrowException as error:
            raise SchemaError(
                f"a {type(rows).__name__} is not a table: {error}",
                hint="give a table or a frame, not one of its columns",
            ) from error
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
