"""Wildcards in names of columns: `*` is any text, `?` one character; each captures."""

from __future__ import annotations

import re


def matching(pattern: str, name: str) -> tuple[str, ...] | None:
    """What the wildcards of a pattern stand for in a name; None if it does not match.

    >>> matching("Temp*", "Temp.C"), matching("Temp*", "DO"), matching("a.b", "a.b")
    (('.C',), None, ())
    """
    if pattern == name:
        return ()
    expression = re.escape(pattern).replace(r"\*", "(.*)").replace(r"\?", "(.)")
    found = re.fullmatch(expression, name, re.DOTALL)
    return None if found is None else found.groups()
