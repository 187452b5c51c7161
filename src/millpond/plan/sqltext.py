"""SQL texts are read with sqlglot before any engine sees them, so that errors have positions.

>>> check_sql('SELECT a FROM source WHERE')
Traceback (most recent call last):
...
millpond.base.errors.SqlError: this SQL can't be read at line 1, column 26: ...
"""

from __future__ import annotations

from millpond.base.errors import SqlError


def check_sql(text: str) -> None:
    """Check that a text is one query in Spark's SQL; an error says where it stops being one."""
    import sqlglot
    from sqlglot import errors, exp

    if not text.strip():
        raise SqlError("the query is empty", line=1, column=1)
    try:
        parsed = [part for part in sqlglot.parse(text, read="spark") if part is not None]
    except errors.ParseError as error:
        raise _located(text, error) from error
    except errors.TokenError as error:
        raise SqlError(f"this SQL can't be read: {error}") from error
    except RecursionError as error:
        raise SqlError("this SQL is nested too deeply to be read") from error
    if len(parsed) != 1:
        raise SqlError(f"one query is wanted, this text has {len(parsed)}")
    if not isinstance(parsed[0], exp.Query | exp.Values):
        raise SqlError(
            f"a query is wanted, this is {parsed[0].key.upper()}",
            hint="a plan only reads: SELECT …, WITH … SELECT …, VALUES …",
        )


def _located(text: str, error: Exception) -> SqlError:
    details = getattr(error, "errors", None) or [{}]
    first = details[0]
    line, column = first.get("line"), first.get("col")
    what = str(first.get("description") or error).rstrip(".")
    if line is None or column is None:
        return SqlError(f"this SQL can't be read: {what}")
    lines = text.splitlines() or [text]
    shown = lines[min(line, len(lines)) - 1]
    pointer = " " * max(0, column - 1) + "^"
    return SqlError(
        f"this SQL can't be read at line {line}, column {column}: {what}\n  {shown}\n  {pointer}",
        line=line,
        column=column,
    )
