r"""SQL LIKE: `%` any text, `_` one code point, `\` takes the next of `%`, `_`, `\` as it is.

Patterns that are plain tests (`x%`, `%x`, `%x%`, `x`) run as those tests; the others as a regular
expression.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow.compute as pc

from millpond.engine.arrow.eval.values import fail

if TYPE_CHECKING:
    import pyarrow as pa

    from millpond.plan.bound import BoundExpr

Token: TypeAlias = tuple[Literal["text", "one", "any"], str]


def like(expr: BoundExpr, column: pa.Array, pattern: str) -> pa.Array:
    """Which strings match a pattern."""
    tokens = _tokens(pattern)
    if tokens is None:
        raise fail(
            expr,
            f"the pattern {pattern!r} can't be read",
            hint=r"an escape stands before %, _ or \ only: write \\ for a backslash",
        )
    kinds = [kind for kind, _ in tokens]
    text = next((text for kind, text in tokens if kind == "text"), "")
    if kinds in ([], ["text"]):
        return pc.equal(column, text)
    if kinds in (["text", "any"], ["any"]):
        return pc.starts_with(column, text)
    if kinds == ["any", "text"]:
        return pc.ends_with(column, text)
    if kinds == ["any", "text", "any"]:
        return pc.match_substring(column, text)
    return pc.match_substring_regex(column, _regex(tokens))


@lru_cache(maxsize=256)
def _tokens(pattern: str) -> tuple[Token, ...] | None:
    r"""The pattern in pieces, or None where an escape stands before something else.

    >>> _tokens(r"a\%b_%")
    (('text', 'a%b'), ('one', ''), ('any', ''))
    """
    tokens: list[Token] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
            if pattern[at : at + 1] not in ("%", "_", "\\"):
                return None
            char = pattern[at]
        elif char in "%_":
            if char == "_" or not tokens or tokens[-1][0] != "any":
                tokens.append(("any" if char == "%" else "one", ""))
            at += 1
            continue
        before = tokens.pop()[1] if tokens and tokens[-1][0] == "text" else ""
        tokens.append(("text", before + char))
        at += 1
    return tuple(tokens)


def _regex(tokens: tuple[Token, ...]) -> str:
    """The pattern for RE2, whose `.` is one code point and, with `s`, also a line's end."""
    parts = {"one": ".", "any": ".*"}
    body = "".join(re.escape(text) if kind == "text" else parts[kind] for kind, text in tokens)
    return f"(?s)^(?:{body})$"
