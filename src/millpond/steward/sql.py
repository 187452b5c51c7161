"""Queries over paths: `SELECT … FROM "/sensors/a" JOIN "/derived/b" …` as a plan.

A table that the query does not define itself is a path of the pond, a pattern, a version of a path,
or a URL: whatever `cat` reads. Its text stays as it is, so errors point at what the user wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from millpond.base.errors import MillpondError, PathTypeError, SqlError
from millpond.base.settings import Settings
from millpond.plan.sqltables import outer_tables, wrong_at
from millpond.plan.sqltext import pointed, position
from millpond.plan.streams import Sql
from millpond.steward.places import parse_place
from millpond.steward.rows.selection import Which, select

if TYPE_CHECKING:
    from datetime import datetime

    from sqlglot import exp

    from millpond.plan.node import Plan
    from millpond.plan.streams import SqlAllow
    from millpond.plan.types import Struct
    from millpond.steward.rows.selection import Opened


class Named(NamedTuple):
    """A table that a query reads."""

    name: str
    offset: int
    """Where in the text it stands first."""


def sql_plan(
    text: str,
    scope: Opened,
    *,
    as_of: int | datetime | None = None,
    settings: Settings | None = None,
) -> Plan:
    """The plan of a query; Spark is asked for its columns."""
    plans = {
        table.name: _rows(text, table, scope, as_of=as_of, settings=settings)
        for table in tables(text)
    }
    allow = (settings or Settings.load()).sql.allow
    columns = _columns(text, {name: plan.schema for name, plan in plans.items()}, allow)
    return Sql(text, tuple(plans), tuple(plans.values()), columns, allow)


def tables(text: str) -> list[Named]:
    """The tables that a query reads and does not define, each once.

    >>> tables('WITH a AS (SELECT * FROM "/raw/*") SELECT * FROM a JOIN `/t@v3` USING (x)')
    [Named(name='/t@v3', offset=56), Named(name='/raw/*', offset=25)]
    """
    found: dict[str, Named] = {}
    for table, here in outer_tables(text):
        name = table.this
        if table.args.get("db") is not None:
            raise wrong_at(text, here, f"{table.sql()} is no path", hint=_quote_it(table))
        if table.args.get("version") is not None:
            hint = f'name it in the path: "{name.this}@v3"; or the moment: --as-of'
            raise wrong_at(text, here, "a version is not asked for like this", hint=hint)
        found.setdefault(name.this, Named(name.this, here))
    return list(found.values())


def _rows(
    text: str,
    table: Named,
    scope: Opened,
    *,
    as_of: int | datetime | None,
    settings: Settings | None,
) -> Plan:
    """The rows of a table; what is wrong with it is said with its place in the text."""
    try:
        found = select([parse_place(table.name)], scope, Which(as_of=as_of), settings=settings)
        if found.plan is not None:
            return found.plan
        raise PathTypeError(
            f"{table.name} has bytes and no rows",
            path=table.name,
            hint=f'say how they are to be read: "csv://{found.names[0]}"',
        )
    except MillpondError as error:
        line, column = position(text, table.offset)
        error.message += f" (line {line}, column {column}){pointed(text, line, column)}"
        raise


def _columns(text: str, inputs: dict[str, Struct], allow: SqlAllow) -> Struct:
    from millpond.plan.run import engine_named

    spark: Any = engine_named("spark")
    try:
        columns: Struct = spark.sql_schema(text, inputs, allow=allow)
    except SqlError as error:
        if error.line is not None and error.column is not None:
            error.message += pointed(text, error.line, error.column)
        raise
    return columns


def _quote_it(table: exp.Table) -> str:
    names = "/".join(part.name.strip("/") for part in table.parts)
    return f'paths are quoted as a whole: "/{names}"; files of this machine are "host+csv:///…"'
