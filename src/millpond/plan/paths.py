"""Tree paths as text: `payload.commits[*].author.name` is read into steps here.

Steps: `.name` into a struct or a map, `[3]` one element (`[-1]` the last), `[*]` every element.
A name with other characters is quoted: `"Site.Temp.C".value`.

>>> parse_path('a[*]."x y"[0]')
(Name(name='a'), Each(), Name(name='x y'), Index(index=0))
>>> format_path(parse_path('a[*]."x y"[0]'))
'a[*]."x y"[0]'
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from millpond.base.errors import ExpressionSyntaxError


@dataclass(frozen=True, slots=True)
class Name:
    """A member of a struct, or the value of a map's key."""

    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """One element of a list, counted from 0, or from the end when negative."""

    index: int


@dataclass(frozen=True, slots=True)
class Each:
    """Every element of a list: what follows applies to each, the result is a list."""


Step: TypeAlias = Name | Index | Each

_TOKEN = re.compile(
    r"""(?P<name>[^\W\d][\w\-]*)|"(?P<quoted>(?:[^"]|"")*)"|\[(?P<index>-?\d+)\]|(?P<each>\[\*\])|(?P<dot>\.)"""
)
_PLAIN = re.compile(r"[^\W\d][\w\-]*")


def parse_path(text: str) -> tuple[Step, ...]:
    """Read a path; an error shows where it stops making sense."""
    steps: list[Step] = []
    position, after_dot = 0, True
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionSyntaxError(
                "this path can't be read",
                text=text,
                position=position,
                hint='names with other characters are quoted: "Site.Temp.C".value',
            )
        if match.lastgroup == "dot":
            if after_dot:
                raise ExpressionSyntaxError("a name is missing", text=text, position=position)
            after_dot = True
        elif match.lastgroup in ("name", "quoted"):
            if not after_dot:
                raise ExpressionSyntaxError("a dot is missing", text=text, position=position)
            quoted = match["quoted"]
            steps.append(Name(match["name"] if quoted is None else quoted.replace('""', '"')))
            after_dot = False
        else:
            if after_dot and steps:
                raise ExpressionSyntaxError("a name is missing", text=text, position=position)
            steps.append(Each() if match["each"] else _index(match["index"], text, position))
            after_dot = False
        position = match.end()
    if after_dot:
        raise ExpressionSyntaxError("a name is missing", text=text, position=len(text))
    return tuple(steps)


def _index(digits: str, text: str, position: int) -> Index:
    if len(digits) > 10 or not -(1 << 31) <= int(digits) < 1 << 31:
        raise ExpressionSyntaxError("no list is this long", text=text, position=position)
    return Index(int(digits))


def format_path(steps: tuple[Step, ...]) -> str:
    """The text that `parse_path` reads as these steps."""
    parts: list[str] = []
    for step in steps:
        if isinstance(step, Name):
            quoted = '"' + step.name.replace('"', '""') + '"'
            parts.append("." if parts else "")
            parts.append(step.name if _PLAIN.fullmatch(step.name) else quoted)
        else:
            parts.append("[*]" if isinstance(step, Each) else f"[{step.index}]")
    return "".join(parts)
