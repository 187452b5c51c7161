"""Rows of a plan to standard output, in the format that was asked for or that fits the reader."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any, Final, Literal

from millpond.base.errors import PathTypeError
from millpond.cli.attending import ending_progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from millpond.cli.context import Context
    from millpond.plan.node import Plan
    from millpond.steward.rows.selection import Keeping

FORMATS: Final = ("raw", "table", "csv", "json", "parquet", "arrow")
_BINARY: Final = ("parquet", "arrow")


def write_plan(
    context: Context,
    plan: Plan,
    format_: str | None,
    *,
    engine: Any,
    keeping: Keeping | None = None,
) -> None:
    """Run a plan and write its rows, as they come; they pass through `keeping` on their way."""
    chosen = format_ or _usual_format(context)
    if chosen in _BINARY and sys.stdout.isatty():
        raise PathTypeError(
            f"{chosen} is binary and would upset the terminal",
            path="-",
            hint="write it to a file with >, or choose csv, json or table",
        )
    with plan.execute(engine=engine) as run:
        _write(context, chosen, run.schema, run if keeping is None else keeping(run))


def _usual_format(context: Context) -> str:
    if context.as_json:
        return "json"
    return "table" if sys.stdout.isatty() else "raw"


def _write(
    context: Context, format_: str, schema: pa.Schema, run: Iterable[pa.RecordBatch]
) -> None:
    if format_ != "table":
        from millpond.steward.rows.files import write_batches

        kind: Any = "csv" if format_ == "raw" else format_
        write_batches(kind, sys.stdout.buffer, schema, ending_progress(run))
        return
    from millpond.cli.rowtable import show_rows

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    rows = show_rows(schema, ending_progress(run), context.out.text, width=width)
    context.out.say(f"{rows:,} row{'' if rows == 1 else 's'}")


def write_explained(context: Context, plan: Plan, *, engine: Any, is_query: bool) -> None:
    """Show how a plan would be run, and why on that engine."""
    from millpond.kernel.engines import plan_reason
    from millpond.plan.explain import explain

    format_: Literal["text", "json"] = "json" if context.as_json else "text"
    reason = "SQL runs there" if is_query else None
    if context.engine not in (None, "auto"):
        reason = "asked for by --engine"
    elif reason is None or context.settings.engine != "auto":
        reason = plan_reason(plan, context.settings)
    text = explain(plan, engine=engine, format=format_, reason=reason)
    context.out.text(text if text.endswith("\n") else f"{text}\n")


def query_engine(context: Context) -> Any:
    """The engine for SQL: Spark, unless another one is asked for."""
    from millpond.kernel.engines import row_engine

    return "spark" if context.settings.engine == "auto" else row_engine("auto", context.settings)
