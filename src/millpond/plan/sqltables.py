"""The tables that a query reads: which they are, and whether they are those that it may read."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from millpond.base.errors import SqlError
from millpond.plan.sqlfunctions import SQL_FUNCTIONS
from millpond.plan.sqltext import parse_sql, pointed, position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

_ANY_TABLE: Final = "identifier"


def outer_tables(text: str) -> Iterator[tuple[exp.Table, int]]:
    """The tables that a query reads and does not define itself, and where each stands."""
    from sqlglot import exp

    for table in parse_sql(text).find_all(exp.Table):
        if isinstance(table.this, exp.Func):  # such as range(10)
            _check_function(text, table.this)
            continue
        if not isinstance(table.this, exp.Identifier | exp.Dot):  # such as ? and ${x}
            start = min((n.meta["start"] for n in table.walk() if "start" in n.meta), default=0)
            raise wrong_at(
                text,
                start,
                f"{table.this.sql(dialect='spark')} is not the name of a table",
                hint="write the name of an input; parameters and variables are not filled in",
            )
        is_plain = table.args.get("db") is None
        if not (is_plain and _is_defined(table, table.this.this.lower())):
            yield table, min(part.meta.get("start", 0) for part in table.parts)


@lru_cache(maxsize=256)
def check_inputs(text: str, names: tuple[str, ...]) -> None:
    """Refuse a query that reads more than its inputs, or calls what does more than compute.

    This is an early error, for which Spark need not run; Spark's own plan is judged as well.

    >>> check_inputs("WITH a AS (SELECT * FROM S) SELECT * FROM A", ("s",))
    >>> check_inputs("SELECT * FROM csv.`/tmp/a.csv`", ("s",))
    Traceback (most recent call last):
    ...
    millpond.base.errors.SqlError: csv.`/tmp/a.csv` is no input (line 1, column 15)
      SELECT * FROM csv.`/tmp/a.csv`
                    ^
      hint: the inputs are: s
    """
    from sqlglot import exp

    known = {name.lower() for name in names}
    for table, here in outer_tables(text):
        if table.args.get("db") is not None or table.this.this.lower() not in known:
            shown = table.sql(dialect="spark") if table.args.get("db") else table.this.this
            hint = f"the inputs are: {', '.join(names)}"
            raise wrong_at(text, here, f"{shown} is no input", hint=hint)
    for call in parse_sql(text).find_all(exp.Anonymous):
        if call.name.lower() not in SQL_FUNCTIONS:
            what = f"{call.name} is not a function that a query may call"
            hint = "functions that compute with values are allowed: see docs/trust.md"
            raise wrong_at(text, call.meta.get("start", 0), what, hint=hint)
    for script in parse_sql(text).find_all(exp.QueryTransform):
        start = min((n.meta["start"] for n in script.walk() if "start" in n.meta), default=0)
        what = "a query may not have TRANSFORM … USING, which runs a program"
        raise wrong_at(text, start, what, hint="compute with functions of SQL")


def wrong_at(text: str, offset: int, what: str, *, hint: str) -> SqlError:
    """An error at a place of a query."""
    line, column = position(text, offset)
    return SqlError(
        f"{what} (line {line}, column {column}){pointed(text, line, column)}",
        line=line,
        column=column,
        hint=hint,
    )


def _check_function(text: str, call: exp.Func) -> None:
    """Refuse a function that stands for any table, which is found in a text or computed."""
    if call.name.lower() == _ANY_TABLE:
        hint = "write its name where IDENTIFIER(…) stands"
        raise wrong_at(text, call.meta.get("start", 0), "a table is not named like this", hint=hint)


def _is_defined(table: exp.Table, name: str) -> bool:
    """Whether a name is that of a WITH around it; a WITH's parts see those before them alone."""
    from sqlglot import exp

    below: exp.Expr = table
    above = table.parent
    within: exp.Expr | None = None  # the part of a WITH that the table is in
    while above is not None:
        if isinstance(above, exp.With):
            for part in above.expressions:
                if part is below:
                    if above.args.get("recursive") and part.alias.lower() == name:
                        return True
                    break
                if part.alias.lower() == name:
                    return True
            within = above
        else:
            with_ = above.args.get("with_")
            parts = [] if with_ is None or with_ is within else with_.expressions
            if any(part.alias.lower() == name for part in parts):
                return True
        below, above = above, above.parent
    return False
