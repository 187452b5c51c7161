"""Footers of Parquet files that pyarrow takes, and then ends the process about.

What a footer says of a column is checked by native code when it is asked for, and a mistake there
is no error of Python's. So the parts that are checked are looked at first, in the bytes of the
footer: Thrift's compact protocol, which pyarrow has read as a whole by then. A compiled function
does that where there is one; in Python, a column takes a twentieth of a millisecond.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from millpond.engine.arrow.native.library import library

_SCHEMA: Final = 2
_ROW_GROUPS: Final = 4
_COLUMNS: Final = 1
_META_DATA, _CRYPTO = 3, 8
_SIZES: Final = 16
_UNENCODED, _REPETITIONS, _DEFINITIONS = 1, 2, 3
_REPETITION, _CHILDREN, _TYPE = 3, 5, 1
_OPTIONAL, _REPEATED, _BYTE_ARRAY = 1, 2, 6
_BOOLEANS, _BYTE, _WHOLE, _DOUBLE, _BINARY = (1, 2), 3, (4, 5, 6), 7, 8
_LISTS, _STRUCT = (9, 10), 12


def footer_fault(footer: bytes, columns: int) -> str | None:
    """Return what is wrong with a footer that shows so many leaf columns; None if nothing is."""
    check = getattr(library(), "millpond_footer", None)
    if check is not None:
        content, leaves = np.frombuffer(footer, np.uint8), np.empty((columns, 3), np.int64)
        fault = check(content.ctypes.data, len(footer), leaves.ctypes.data, columns)
        if not fault:
            return None
    return fault_in_python(footer) or ("it can't be read" if check is not None else None)


def fault_in_python(footer: bytes) -> str | None:
    """Return what is wrong with a footer, without the compiled function."""
    try:
        return _Walk(footer).fault()
    except IndexError:
        return "it breaks off"


class _Walk:
    """A way through the bytes of a footer."""

    __slots__ = ("_at", "_bytes")

    def __init__(self, footer: bytes) -> None:
        self._bytes, self._at = footer, 0

    def fault(self) -> str | None:
        """Return the first fault of a column."""
        leaves: list[tuple[int, int, bool]] = []
        field = 0
        while kind := self._field(field):
            field, type_ = kind
            if field == _SCHEMA:
                leaves = self._leaves()
            elif field == _ROW_GROUPS:
                for _ in range(self._size()):
                    fault = self._row_group(leaves)
                    if fault is not None:
                        return fault
            else:
                self._skip(type_)
        return None

    # Schema

    def _leaves(self) -> list[tuple[int, int, bool]]:
        """The most repetition and definition levels of each leaf, and whether it holds bytes."""
        found: list[tuple[int, int, bool]] = []
        above: list[list[int]] = []  # children to come, and the levels of their parent
        for number in range(self._size()):
            repetition = children = 0
            type_, field = -1, 0
            while kind := self._field(field):
                field, wire = kind
                if field == _REPETITION:
                    repetition = self._number()
                elif field == _CHILDREN:
                    children = self._number()
                elif field == _TYPE:
                    type_ = self._number()
                else:
                    self._skip(wire)
            while above and not above[-1][0]:
                above.pop()
            levels = above[-1][1:] if above else [0, 0]
            if above:
                above[-1][0] -= 1
            if number:  # the root has no levels
                levels = [
                    levels[0] + (repetition == _REPEATED),
                    levels[1] + (repetition in (_OPTIONAL, _REPEATED)),
                ]
            if children:
                above.append([children, *levels])
            elif number:
                found.append((levels[0], levels[1], type_ == _BYTE_ARRAY))
        return found

    # Columns

    def _row_group(self, leaves: list[tuple[int, int, bool]]) -> str | None:
        field = 0
        while kind := self._field(field):
            field, type_ = kind
            if field != _COLUMNS:
                self._skip(type_)
                continue
            for number in range(self._size()):
                fault = self._column(leaves[number] if number < len(leaves) else (0, 0, False))
                if fault is not None:
                    return f"column {number} {fault}"
        return None

    def _column(self, leaf: tuple[int, int, bool]) -> str | None:
        field, is_described = 0, False
        while kind := self._field(field):
            field, type_ = kind
            if field == _CRYPTO:
                return "is encrypted"
            if field != _META_DATA:
                self._skip(type_)
                continue
            is_described, inner = True, 0
            while found := self._field(inner):
                inner, type_ = found
                if inner == _SIZES:
                    fault = self._sizes(leaf)
                    if fault is not None:
                        return fault
                else:
                    self._skip(type_)
        return None if is_described else "is not described"

    def _sizes(self, leaf: tuple[int, int, bool]) -> str | None:
        field = 0
        while kind := self._field(field):
            field, type_ = kind
            if field == _UNENCODED and not leaf[2]:
                return "counts bytes of what is not bytes"
            if field in (_REPETITIONS, _DEFINITIONS):
                size = self._size()
                if size and size != leaf[field - _REPETITIONS] + 1:
                    return "counts levels that it does not have"
                for _ in range(size):
                    self._number()
            else:
                self._skip(type_)
        return None

    # Thrift

    def _field(self, last: int) -> tuple[int, int] | None:
        """The number and the type of the next field; None at the end of a struct."""
        head = self._bytes[self._at]
        self._at += 1
        if not head & 15:
            return None
        step = head >> 4
        return (last + step if step else self._number()), head & 15

    def _number(self) -> int:
        """A number, which is written so that small negative ones are short."""
        found = self._plain()
        return (found >> 1) ^ -(found & 1)

    def _plain(self) -> int:
        data, at = self._bytes, self._at
        byte = data[at]
        at += 1
        found = byte & 127
        shift = 7
        while byte > 127:
            byte = data[at]
            at += 1
            found |= (byte & 127) << shift
            shift += 7
        self._at = at
        return found

    def _size(self) -> int:
        """The number of items of a list, whose type is left aside."""
        head = self._bytes[self._at]
        self._at += 1
        return head >> 4 if head >> 4 != 15 else self._plain()

    def _skip(self, type_: int) -> None:
        """Go past a value and all that is in it."""
        todo = [(type_, 1)]  # a struct is left when its last field was passed
        while todo:
            kind, times = todo.pop()
            if times > 1:
                todo.append((kind, times - 1))
            if kind == _STRUCT:
                self._fields(todo)
            else:
                self._value(kind, todo)

    def _fields(self, todo: list[tuple[int, int]]) -> None:
        data = self._bytes
        while kind := (head := data[self._at]) & 15:
            self._at += 1
            if not head >> 4:
                self._plain()
            if kind in _LISTS or kind == _STRUCT:
                todo.append((_STRUCT, 1))  # the rest of this one
                todo.append((kind, 1))
                return
            self._value(kind, todo)
        self._at += 1

    def _value(self, kind: int, todo: list[tuple[int, int]]) -> None:
        if kind in _BOOLEANS:
            return
        if kind == _BINARY:
            size = self._plain()
            self._at += size
        elif kind == _DOUBLE:
            self._at += 8
        elif kind == _BYTE:
            self._at += 1
        elif kind in _LISTS:
            head = self._bytes[self._at]
            self._at += 1
            size = head >> 4 if head >> 4 != 15 else self._plain()
            inner = head & 15
            if inner in _BOOLEANS:
                self._at += size
            elif size:
                todo.append((inner, size))
        elif kind in _WHOLE:
            self._plain()
        else:  # there is no such type, or no footer has it
            raise IndexError
