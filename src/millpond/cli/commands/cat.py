"""`pond cat`: the bytes or rows of nodes, or of files of this machine, to standard output.

Rows run on the Arrow engine and start no JVM; `--sql` runs on Spark.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from millpond.base.errors import PathTypeError
from millpond.cli.dataparams import END_TIME, PLACE, looking_here
from millpond.cli.params import AS_OF, TIME
from millpond.cli.rowout import FORMATS, query_engine, write_explained, write_plan

if TYPE_CHECKING:
    from datetime import datetime

    from millpond.cli.context import Context
    from millpond.plan.node import Plan
    from millpond.steward.rows.selection import Selection


@dataclass(frozen=True, slots=True)
class _Asked:
    format: str | None
    query: str | None
    limit: int | None
    explain: bool

    @property
    def needs_rows(self) -> str | None:
        """The option that only rows can answer."""
        if self.query is not None:
            return "--sql"
        if self.limit is not None:
            return "--limit"
        if self.explain:
            return "--explain"
        return None if self.format in (None, "raw") else f"--format {self.format}"


@click.command("cat")
@click.argument("places", metavar="PATH...", nargs=-1, required=True, type=PLACE)
@click.option("--format", "format_", type=click.Choice(FORMATS), help="How it is written.")
@click.option("--sql", "query", metavar="QUERY", help="A query over the table source, on Spark.")
@click.option("--time-start", type=TIME, help="Only rows of a series from this time on.")
@click.option("--time-end", type=END_TIME, help="Only rows up to this time; a day is meant whole.")
@click.option("--version", type=click.IntRange(min=1), help="This version, as PATH@v3 does.")
@click.option("--as-of", type=AS_OF, help="The pond as it was after a transaction or at a time.")
@click.option("--limit", type=click.IntRange(min=0), help="At most so many rows.")
@click.option("--explain", is_flag=True, help="Show how the rows would be read, and read none.")
@click.pass_obj
def command(
    context: Context,
    *,
    places: tuple[str, ...],
    format_: str | None,
    query: str | None,
    time_start: datetime | None,
    time_end: datetime | None,
    version: int | None,
    as_of: int | datetime | None,
    limit: int | None,
    explain: bool,
) -> None:
    """Write the bytes or rows of PATH to standard output.

    PATH is a path or pattern of the pond, or a file of this machine, for which no pond is needed:
    host:///f. A format before it reads rows out of bytes: csv:///raw/*.csv, host+json:///f; also
    parquet, arrow, excelhtml, oteljson, weblog, delta. Several tables are united by the names of
    their columns: what is missing is null. Several files come one behind the other.

    Without --format, rows are a table on a terminal and CSV elsewhere (JSON lines with --json), and
    files are written as they are, which is what raw means: bytes for files, CSV for rows. arrow is
    Arrow's streaming format. Times are in UTC. In CSV, an unquoted empty field is null, nested
    values are JSON, and bytes are base64.

    \b
    Examples:
      pond cat /notes/readme.txt
      pond cat /sensors/a --time-start 2024-05-01 --time-end 2024-05-31
      pond cat '/sensors/*' --limit 10 --format table
      pond cat /t@v3 --format parquet > t.parquet
      pond cat /sensors/a --sql 'SELECT max(level) FROM source'
      pond cat 'csv:///raw/*.csv?delimiter=;' --limit 10
      pond cat host+csv:///data/levels.csv --format json
    """
    from millpond.steward.places import parse_place
    from millpond.steward.rows.selection import Which, select

    context.start()
    asked = _Asked(format_, query, limit, explain)
    if time_start is not None and time_end is not None and time_end < time_start:
        raise click.UsageError(f"--time-end {time_end} is before --time-start {time_start}.")
    with looking_here(places):
        found = select(
            [parse_place(text) for text in places],
            lambda: context.read(as_of, computes=not explain),
            Which(version, as_of, time_start, time_end),
            settings=context.settings,
        )
    if found.plan is None:
        _write_bytes(context, found, asked)
    else:
        _write_rows(context, found, asked)


# Bytes


def _write_bytes(context: Context, found: Selection, asked: _Asked) -> None:
    name = found.names[0]
    if asked.needs_rows is not None:
        raise PathTypeError(
            f"{name} has bytes and no rows, so {asked.needs_rows} can't be used",
            path=name,
            hint=f"say how it is to be read: {found.read_as}; or pipe it through head, jq …",
        )
    assert found.chunks is not None
    first = next(found.chunks, b"")
    if asked.format is None and sys.stdout.isatty() and b"\0" in first:
        raise PathTypeError(
            f"{name} is binary and would upset the terminal",
            path=name,
            hint="write it to a file with >, or say --format raw",
        )
    context.out.data(first)
    for chunk in found.chunks:
        context.out.data(chunk)


# Rows


def _write_rows(context: Context, found: Selection, asked: _Asked) -> None:
    plan, is_whole = found.plan, asked.query is None and asked.limit is None
    assert plan is not None
    if asked.query is not None:
        from millpond.plan.make import sql

        plan = sql(asked.query, source=plan)
    if asked.limit is not None:
        plan = plan.head(asked.limit)
    engine = _engine(context, asked, plan)
    if asked.explain:
        write_explained(context, plan, engine=engine, is_query=asked.query is not None)
        return
    keeping = found.keeping if is_whole else None
    write_plan(context, plan, asked.format, engine=engine, keeping=keeping)


def _engine(context: Context, asked: _Asked, plan: Plan) -> Any:
    from millpond.kernel.engines import plan_engine

    if asked.query is not None:
        return query_engine(context)
    return plan_engine(plan, context.settings)
