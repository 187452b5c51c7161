"""SQL texts are read with sqlglot before any engine sees them, so that errors have positions.

>>> check_sql('SELECT a FROM source WHERE')
Traceback (most recent call last):
...
millpond.base.errors.SqlError: this SQL can't be read at line 1, column 22: ...
"""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from millpond.base.errors import SqlError

if TYPE_CHECKING:
    from sqlglot import exp

_UNSTEADY: Final = re.compile(
    r"\b(?:rand\w*|uuid|now|curdate|today|yesterday|tomorrow|localtimestamp|current_\w+|tablesample"
    r"|monotonically_increasing_id|spark_partition_id|input_file_\w+|session_user)\b"
    r"|\b(?:uniform|shuffle|unix_timestamp|user|version|reflect|java_method)"
    r"[`\"]?(?:\s|/\*.*?\*/|--[^\n]*\n)*\(",
    re.IGNORECASE | re.DOTALL,
)
"""What gives another value at another time or in another place."""
_MOST_CHECKED: Final = 1000
_checked: Final[set[str]] = set()
_HINT: Final = "the dialect is that of Spark SQL, with names in double quotes or backticks"
_ENDS: Final = {"'": "'", '"': '"', "`": "`", "--": "\n", "/*": "*/"}


def check_sql(text: str) -> None:
    """Check that a text is one query in Spark's SQL; an error says where it stops being one."""
    if text in _checked:
        return  # a plan is made anew many times while it is optimized
    parse_sql(text)
    note_checked(text)


def note_checked(text: str) -> None:
    """Take note that a text is one query, and need not be read again."""
    if len(_checked) >= _MOST_CHECKED:
        _checked.clear()
    _checked.add(text)


def is_steady(text: str) -> bool:
    """Whether a query gives the same rows whenever it is asked; in doubt it does not.

    >>> is_steady("SELECT a FROM t"), is_steady("SELECT * FROM t WHERE day = Current_Date()")
    (True, False)
    """
    return _UNSTEADY.search(text) is None


def parse_sql(text: str) -> exp.Query | exp.Values:
    """A text as one query in Spark's SQL, with identifiers in double quotes or backticks."""
    import sqlglot
    from sqlglot import errors, exp

    # It warns of what it does not read any further; what that is, we say ourselves.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    if not text.strip():
        hint = "a query is SELECT …, WITH … SELECT …, or VALUES …"
        raise SqlError("the query is empty", line=1, column=1, hint=hint)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line, column = position(text, error.start)
        raise SqlError(
            f"this SQL is not valid Unicode at line {line}, column {column}",
            line=line,
            column=column,
            hint="write the query in UTF-8",
        ) from error
    try:
        parsed = [part for part in sqlglot.parse(text, read=_dialect()) if part is not None]
    except errors.ParseError as error:
        raise _located(text, error) from error
    except errors.TokenError as error:
        raise _unclosed(text) from error
    except RecursionError as error:
        raise SqlError(
            "this SQL is nested too deeply to be read", hint="name its parts by WITH … AS (…)"
        ) from error
    if len(parsed) != 1:
        raise SqlError(
            f"one query is wanted, this text has {len(parsed)}",
            hint="run each by itself; UNION ALL puts rows of several together",
        )
    if not isinstance(parsed[0], exp.Query | exp.Values):
        found = parsed[0]
        word = str(found.this if isinstance(found, exp.Command) else found.key).upper()
        hint = "a query only reads: SELECT …, WITH … SELECT …, VALUES …"
        if word in ("SHOW", "DESCRIBE", "DESC"):
            hint += "; pond describe PATH shows columns, pond list what there is"
        raise SqlError(f"{word} is not a query", line=1, column=1, hint=hint)
    return parsed[0]


def tokens(text: str) -> list[Any]:
    """Return the words of a text, as our parser sees them."""
    found: list[Any] = _dialect()().tokenize(text)
    return found


def pointed(text: str, line: int, column: int) -> str:
    """The line of a text, and under it a caret at the column; to go behind a message.

    >>> print("wrong" + pointed("SELECT\\n  levl", 2, 3))
    wrong
        levl
        ^
    """
    lines = text.splitlines() or [text]
    shown = lines[min(line, len(lines)) - 1]
    # Tabs stay tabs, so that the caret is under what it means.
    before = "".join(c if c == "\t" else " " for c in shown[: max(0, column - 1)])
    return f"\n  {shown}\n  {before.ljust(max(0, column - 1))}^"


def position(text: str, offset: int) -> tuple[int, int]:
    """The line and the column of a place in a text, both from 1.

    >>> position("SELECT\\n  levl", 9)
    (2, 3)
    """
    before = text[:offset]
    return before.count("\n") + 1, offset - before.rfind("\n")


@cache
def _dialect() -> Any:
    """Spark's SQL with `spark.sql.ansi.doubleQuotedIdentifiers`, which all our sessions have."""
    from sqlglot.dialects.spark import Spark

    class Quoted(Spark):
        class Tokenizer(Spark.Tokenizer):
            QUOTES: ClassVar = ["'"]
            IDENTIFIERS: ClassVar = ["`", '"']

    return Quoted


def _located(text: str, error: Exception) -> SqlError:
    details = getattr(error, "errors", None) or [{}]
    first = details[0]
    line, column = first.get("line"), first.get("col")
    what = str(first.get("description") or error).rstrip(".")
    if " but got <Token" in what:
        what = what.partition(" but got <Token")[0]
    if line is None or column is None:
        return SqlError(f"this SQL can't be read: {what}", hint=_HINT)
    # sqlglot tells the end of the word at which it stopped.
    column = max(1, column - max(0, len(first.get("highlight") or "") - 1))
    return SqlError(
        f"this SQL can't be read at line {line}, column {column}: {what}"
        f"{pointed(text, line, column)}",
        line=line,
        column=column,
        hint=_HINT,
    )


def open_at(text: str) -> tuple[int, str] | None:
    """Where a quotation or a comment begins that a text does not end, and how it begins.

    >>> open_at("SELECT 'it''s' FROM `/sen"), open_at("SELECT 1 -- one")
    ((20, '`'), None)
    """
    at = 0
    while at < len(text):
        opening = next((mark for mark in _ENDS if text.startswith(mark, at)), None)
        if opening is None:
            at += 1
            continue
        end = at + len(opening)
        while end < len(text) and not text.startswith(_ENDS[opening], end):
            end += 2 if opening == "'" and text[end] == "\\" else 1
        if end >= len(text) and opening != "--":
            return at, opening
        at = end + len(_ENDS[opening])
    return None


def _unclosed(text: str) -> SqlError:
    """The error for a text that can't be cut into words."""
    found = open_at(text)
    if found is None:
        return SqlError("this SQL can't be read", hint=_HINT)
    line, column = position(text, found[0])
    return SqlError(
        f"this SQL can't be read at line {line}, column {column}: "
        f"what begins with {found[1]} does not end{pointed(text, line, column)}",
        line=line,
        column=column,
        hint=f"end it with {_ENDS[found[1]]!r}",
    )
