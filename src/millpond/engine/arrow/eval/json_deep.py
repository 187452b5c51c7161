"""JSON text that is nested deeper than Python's own decoder goes: without recursion, and slower.

How deep that one goes depends on who calls it. Here the limit is a number, the one of Spark.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from json import JSONDecoder

MOST_LEVELS: Final = 999
"""Lists and objects inside each other. Spark's parser takes 1000, and is given one around all."""
_SPACE: Final = re.compile(r"[ \t\n\r]*")


class TooDeepError(ValueError):
    """JSON with more levels than are read."""


def decode_deep(text: str, decoder: JSONDecoder) -> Any:
    """What the decoder makes of a text; a `ValueError` if that is no JSON, or too deep.

    >>> import json
    >>> decode_deep('[[1, {"a": []}], "b"]', json.JSONDecoder(object_pairs_hook=tuple))
    [[1, (('a', []),)], 'b']
    """
    levels: list[_Level] = []
    at = 0
    while True:
        value, at = _begin(text, at, decoder, levels)
        while levels:
            at = _skip(text, at)
            levels[-1].values.append(value)
            if text[at : at + 1] == ",":
                at = levels[-1].begin_value(text, at + 1, decoder)
                break
            value, at = levels.pop().end(text, at, decoder)
        else:
            if _skip(text, at) < len(text):
                raise ValueError(f"more text follows at {at}")
            return value


def _begin(text: str, at: int, decoder: JSONDecoder, levels: list[_Level]) -> tuple[Any, int]:
    """The first whole value from here on, and where it ends; what is around it is opened."""
    at = _skip(text, at)
    while text[at : at + 1] in ("[", "{"):
        if len(levels) == MOST_LEVELS:
            raise TooDeepError(f"it is nested deeper than {MOST_LEVELS} levels")
        level = _Level(is_object=text[at] == "{")
        at = _skip(text, at + 1)
        if text[at : at + 1] == level.closing:
            return level.end(text, at, decoder)
        levels.append(level)
        at = _skip(text, level.begin_value(text, at, decoder))
    return decoder.raw_decode(text, at)


class _Level:
    """A list or an object that is not closed yet."""

    __slots__ = ("_names", "closing", "values")

    def __init__(self, *, is_object: bool) -> None:
        self.closing = "}" if is_object else "]"
        self.values: list[Any] = []
        self._names: list[Any] | None = [] if is_object else None

    def begin_value(self, text: str, at: int, decoder: JSONDecoder) -> int:
        """Where the next value begins, behind its name if it has one."""
        if self._names is None:
            return at
        at = _skip(text, at)
        _expect(text, at, '"')
        name, at = decoder.raw_decode(text, at)
        self._names.append(name)
        at = _skip(text, at)
        _expect(text, at, ":")
        return at + 1

    def end(self, text: str, at: int, decoder: JSONDecoder) -> tuple[Any, int]:
        """The value, and where it ends."""
        _expect(text, at, self.closing)
        if self._names is None:
            return self.values, at + 1
        assert decoder.object_pairs_hook is not None
        return decoder.object_pairs_hook(list(zip(self._names, self.values, strict=True))), at + 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _expect(text: str, at: int, char: str) -> None:
    if text[at : at + 1] != char:
        raise ValueError(f"{char} is missing at {at}")
