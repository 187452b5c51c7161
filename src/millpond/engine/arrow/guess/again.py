"""Lines that hold nothing but what lines before them held: read as that, which is twice as fast.

They are read by the typed reader of JSON, which refuses a member or a kind of value that is new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.json_typed import reader_of
from millpond.engine.arrow.guess.seen import Unsure
from millpond.engine.looks import EXACT
from millpond.plan import types as t

if TYPE_CHECKING:
    from millpond.engine.arrow.eval.json_typed import Reader
    from millpond.engine.arrow.guess.seen import Seen
    from millpond.engine.arrow.source.lines import Lines


class Again:
    """Reads lines as what was seen so far."""

    def __init__(self, top: Seen) -> None:
        self._top = top
        self._type: t.Struct | None = None
        self._reader: Reader | None = None

    def forget(self) -> None:
        """Take it that something new was seen."""
        self._type = self._reader = None

    def see(self, lines: Lines) -> bool:
        """Take note of the values of some lines; False if they hold something new."""
        if lines.plain is None or not self._top.members:
            return False
        if self._type is None:
            absent: set[tuple[str, ...]] = set()
            type_ = _type(self._top, (), absent, is_list=False)
            self._type = type_ if isinstance(type_, t.Struct) else t.Struct()
            self._reader = None
            if self._type.fields:
                self._reader = reader_of(self._type, frozenset(absent), closed=True)
        if self._reader is None:
            return False
        values = self._reader.read(lines.plain, len(lines))
        if values is None:
            return False
        _see(self._top, values)
        return True


def _type(
    seen: Seen, steps: tuple[str, ...], absent: set[tuple[str, ...]], *, is_list: bool
) -> t.DataType | None:
    """Return how a place is read: as text what may be a time; None if it has to be looked at."""
    kind = "an object" if not steps and not is_list else next(iter(seen.lines), None)
    if kind is None and not is_list:
        absent.add(steps)
        return t.STRING
    if kind == "a boolean":
        return t.BOOLEAN
    if kind == "text":
        return t.STRING
    if kind == "a number":
        return seen.numbers.type if seen.numbers.type in (t.LONG, t.DOUBLE) else None
    if kind == "a list":
        assert seen.items is not None
        element = _type(seen.items, steps, absent, is_list=True)
        return None if element is None else t.List(element)
    fields = []
    for name, member in seen.members.items():
        inner = _type(member, (*steps, name), absent, is_list=is_list)
        if inner is None:
            return None
        fields.append(t.Field(name, inner))
    return t.Struct(tuple(fields)) if fields else None


def _see(top: Seen, values: pa.Array) -> None:
    todo: list[tuple[Seen, pa.Array]] = [(top, values)]
    while todo:
        seen, array = todo.pop()
        if pa.types.is_struct(array.type):
            todo += [(seen.members[f.name], array.field(n)) for n, f in enumerate(array.type)]
        elif pa.types.is_list(array.type):
            assert seen.items is not None
            todo.append((seen.items, array.flatten()))
        elif array.null_count == len(array):
            continue
        elif pa.types.is_string(array.type):
            seen.texts.see(array)
        elif pa.types.is_integer(array.type):
            found = pc.min_max(array)
            seen.numbers.see_wholes(found["min"].as_py(), found["max"].as_py())
        elif pa.types.is_floating(array.type):
            found = pc.min_max(array)
            if found["max"].as_py() >= EXACT or found["min"].as_py() <= -EXACT:
                raise Unsure
