"""`pond sql`: SQL over the paths of the pond, one query or a shell. Spark runs it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from millpond.cli.params import AS_OF
from millpond.cli.rowout import FORMATS, query_engine, write_explained, write_plan

if TYPE_CHECKING:
    from datetime import datetime
    from typing import TextIO

    from millpond.cli.context import Context


@click.command("sql")
@click.argument("query", required=False)
@click.option("-f", "--file", type=click.File(encoding="utf-8"), help="Read the query from a file.")
@click.option("--format", "format_", type=click.Choice(FORMATS), help="How rows are written.")
@click.option("--as-of", type=AS_OF, help="The pond as it was after a transaction or at a time.")
@click.option("--limit", type=click.IntRange(min=0), help="At most so many rows.")
@click.option("--explain", is_flag=True, help="Show how the rows would be read, and read none.")
@click.pass_obj
def command(
    context: Context,
    *,
    query: str | None,
    file: TextIO | None,
    format_: str | None,
    as_of: int | datetime | None,
    limit: int | None,
    explain: bool,
) -> None:
    """Run SQL over the paths of the pond.

    A table is a path in double quotes or backticks: "/sensors/a"; a pattern, whose tables are
    united by the names of their columns: "/sensors/*"; a version: "/t@v3"; or a file of this
    machine: "host+csv:///data/levels.csv".

    QUERY may be - for standard input. Without one, on a terminal, a shell begins. Rows are written
    as cat writes them. pond engine start makes queries quick.

    \b
    Examples:
      pond sql 'SELECT * FROM "/sensors/a" JOIN "/sites" USING (site)'
      pond sql 'SELECT site, max(level) FROM "/sensors/*" GROUP BY site' --format json
      pond sql -f report.sql --as-of 2026-03-01
    """
    from millpond.steward.sql import sql_plan

    if query is not None and file is not None:
        raise click.UsageError("The query is given twice: as QUERY and in a file.")
    context.start()
    if query is None and file is None and sys.stdin.isatty():
        if format_ is not None or limit is not None or explain:
            raise click.UsageError("--format, --limit and --explain are for one query.")
        from millpond.cli.shell import run_shell

        run_shell(context, as_of)
        return
    text = query if query not in (None, "-") else (file or sys.stdin).read()
    assert text is not None
    plan = sql_plan(
        text,
        lambda: context.read(as_of, computes=not explain),
        as_of=as_of,
        settings=context.settings,
    )
    if limit is not None:
        plan = plan.head(limit)
    engine = query_engine(context)
    if explain:
        write_explained(context, plan, engine=engine, is_query=True)
    else:
        write_plan(context, plan, format_, engine=engine)
