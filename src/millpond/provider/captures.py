"""`$0`, `$1`: what the wildcards of a pattern stand for, put into another text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from millpond.base.errors import FactoryConfigError, MillpondError
from millpond.fs.glob import Pattern
from millpond.provider.expand import has_references
from millpond.provider.url import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

_REFERENCE: Final = re.compile(r"\$(\$|[0-9]+|\{[0-9]+\})")


def filled(text: str, captures: Sequence[str]) -> str:
    """A text with captures in it; `$$` is a dollar sign.

    >>> filled("by-site/$1/$0", ["level", "weir"])
    'by-site/weir/level'
    >>> filled("$2", ["a"])
    Traceback (most recent call last):
    ...
    millpond.base.errors.FactoryConfigError: '$2' asks for $2, but the pattern has 1 wildcard
      hint: $0 is what the first wildcard stands for
    """

    def one(found: re.Match[str]) -> str:
        if found[1] == "$":
            return "$"
        number = int(found[1].strip("{}"))
        if number >= len(captures):
            count = f"{len(captures)} wildcard{'' if len(captures) == 1 else 's'}"
            raise FactoryConfigError(
                f"{text!r} asks for ${number}, but the pattern has {count}",
                hint="$0 is what the first wildcard stands for",
            )
        return captures[number]

    return _REFERENCE.sub(one, text)


def without_captures(text: str) -> str:
    """A text with something in place of each capture, to look at the rest of it.

    >>> without_captures("../$1/${0}")
    '../x/x'
    """
    return _REFERENCE.sub("x", text)


def check_captures(text: str, pattern: str) -> str:
    """A text that asks for no more than the wildcards of a URL or path give, if that can be told.

    >>> check_captures("$0", "series:///sensors/*")
    '$0'
    """
    count = _count(pattern)
    if count is not None:
        try:
            filled(text, ["x"] * count)
        except FactoryConfigError as error:
            raise ValueError(f"{error.message}: {pattern}") from None
    return text


def _count(pattern: str) -> int | None:
    """How many wildcards capture; None if it is not known yet."""
    if has_references(pattern):
        return None
    try:
        path = f"/{pattern}" if pattern.startswith(("../", "./")) else pattern
        return Pattern.parse(parse(path).path).capture_count
    except MillpondError:
        return None  # which is found elsewhere
