"""JSON lines, piece after piece, without building what no line so far has had.

Most lines lack most of the members that are wanted. A piece in which one comes up after all is read
once more, and from then on the member is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.engine.arrow.eval.json_typed import reader_of
from millpond.plan.types import Struct

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Buffer

    from millpond.engine.arrow.eval.json_typed import Members


class LeanReader:
    """Reads lines as structs; it remembers which members none of them had."""

    def __init__(self, type_: Struct) -> None:
        self._type = type_
        self._whole = reader_of(type_)
        self._lean = self._whole
        self._absent: Members | None = None

    def read(self, lines: Buffer, count: int) -> pa.Array | None:
        """As `Reader.read` does: None if a line does not fit strictly."""
        if self._whole is None or self._lean is None:
            return None
        values = self._lean.read(lines, count)
        if values is not None and self._absent is not None:
            return values
        if self._absent:
            values = self._whole.read(lines, count)
        if values is not None and count:
            absent = _absent_members(self._type, values)
            self._absent = absent if self._absent is None else self._absent & absent
            self._lean = reader_of(self._type, self._absent)
        return values


def _absent_members(type_: Struct, values: pa.Array) -> Members:
    """The members, at any depth, that are null in all of these structs."""
    found: list[tuple[str, ...]] = []
    todo: list[tuple[tuple[str, ...], Struct, pa.Array]] = [((), type_, values)]
    while todo:
        steps, struct, array = todo.pop()
        for number, field in enumerate(struct):
            member = array.field(number)
            if member.null_count == len(member):
                found.append((*steps, field.name))
            if isinstance(field.type, Struct):
                todo.append(((*steps, field.name), field.type, member))
    return frozenset(found)
