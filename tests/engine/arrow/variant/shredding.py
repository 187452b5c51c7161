"""Variants taken to pieces by hand, for tests that put them together again.

Values are encoded in the widest way that there is, members of objects behind each other in the
wrong order: nothing of it is how the code under test does it. Columns are Parquet's: a group of
`value` and `typed_value`, either of which may be left out.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

EMPTY: Final = b"\x01\x00\x00"
"""Metadata without names."""
MISSING: Final = object()
"""No value at all, not even null."""


@dataclass(frozen=True)
class Shape:
    """Which columns a part of a variant has: those of a plain type, of members or of elements."""

    plain: pa.DataType | None = None
    members: dict[str, Shape] | None = field(default=None, hash=False)
    elements: Shape | None = None

    @property
    def typed(self) -> pa.DataType | None:
        if self.members is not None:
            members = self.members.items()
            return pa.struct([pa.field(name, one.group, False) for name, one in members])
        if self.elements is not None:
            return pa.list_(pa.field("element", self.elements.group, False))
        return self.plain

    @property
    def group(self) -> pa.DataType:
        return group(self.typed)

    @property
    def variant(self) -> pa.DataType:
        return variant(self.typed)


def group(typed: pa.DataType | None, *, value: bool = True) -> pa.DataType:
    """A part of a variant."""
    fields = [pa.field("value", pa.binary())] if value else []
    return pa.struct([*fields, *([] if typed is None else [pa.field("typed_value", typed)])])


def variant(typed: pa.DataType | None, *, value: bool = True) -> pa.DataType:
    """A variant that has a column for parts of it."""
    return pa.struct([pa.field("metadata", pa.binary(), False), *group(typed, value=value)])


def objects(**members: pa.DataType) -> pa.DataType:
    """The typed value of objects with such members."""
    return pa.struct([pa.field(name, one, False) for name, one in members.items()])


def lists(element: pa.DataType) -> pa.DataType:
    """The typed value of arrays with such elements."""
    return pa.list_(pa.field("element", element, False))


def names_of(value: Any) -> list[str]:
    """All names in a value, in the order in which they come, each once."""
    if isinstance(value, dict):
        inner = [name for member in value.values() for name in names_of(member)]
        return list(dict.fromkeys([*value, *inner]))
    if isinstance(value, list):
        return list(dict.fromkeys(name for one in value for name in names_of(one)))
    return []


def metadata_of(names: Sequence[str]) -> bytes:
    """Metadata of these names, with offsets of two bytes."""
    raw = [name.encode() for name in names]
    ends = [sum(map(len, raw[:i])) for i in range(len(raw) + 1)]
    return b"\x41" + b"".join(struct.pack("<H", n) for n in (len(raw), *ends)) + b"".join(raw)


def shredded(value: Any, shape: Shape) -> dict[str, Any]:
    """A variant as a row of the shape's columns."""
    names = names_of(value)
    return {"metadata": metadata_of(names), **_piece(value, shape, names)}


def _piece(value: Any, shape: Shape, names: list[str]) -> dict[str, Any]:
    typed: Any = None
    rest = value
    if shape.members is not None and isinstance(value, dict):
        typed = {
            name: _piece(value.get(name, MISSING), one, names)
            for name, one in shape.members.items()
        }
        rest = {name: one for name, one in value.items() if name not in shape.members} or MISSING
    elif shape.elements is not None and isinstance(value, list):
        rest, typed = MISSING, [_piece(one, shape.elements, names) for one in value]
    elif type(value) is _KINDS.get(shape.plain):
        rest, typed = MISSING, value
    found = {"value": None if rest is MISSING else encoded(rest, names)}
    return found if shape.typed is None else {**found, "typed_value": typed}


_KINDS: Final = {
    pa.int64(): int,
    pa.float64(): float,
    pa.bool_(): bool,
    pa.string(): str,
    pa.large_string(): str,
    None: None,
}


def encoded(value: Any, names: Sequence[str] = ()) -> bytes:
    """A value in the binary encoding."""
    if value is None:
        return b"\x00"
    if isinstance(value, bool):
        return b"\x04" if value else b"\x08"
    if isinstance(value, int):
        return b"\x18" + struct.pack("<q", value)
    if isinstance(value, float):
        return b"\x1c" + struct.pack("<d", value)
    if isinstance(value, str):
        return b"\x40" + struct.pack("<I", len(value.encode())) + value.encode()
    if isinstance(value, list):
        return _nested(0b11111, [], [encoded(one, names) for one in value])
    members = sorted(value, key=str.encode)
    ids = [names.index(name) for name in members]
    return _nested(0b1111110, ids, [encoded(value[name], names) for name in members])


def _nested(header: int, ids: list[int], values: list[bytes]) -> bytes:
    behind = [sum(map(len, values[i + 1 :])) if ids else 0 for i in range(len(values))]
    before = [sum(map(len, values[:i])) for i in range(len(values))]
    numbers = [len(values), *ids, *(behind if ids else before), sum(map(len, values))]
    content = b"".join(reversed(values) if ids else values)
    return bytes([header]) + b"".join(struct.pack("<I", n) for n in numbers) + content
