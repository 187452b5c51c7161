"""Thrift's compact protocol, as much of it as page headers and small footers need."""

from __future__ import annotations

from typing import Any

I32, I64, TEXT, LIST, STRUCT = 5, 6, 8, 9, 12
_TRUE, _FALSE, _BYTE, _I16, _DOUBLE = 1, 2, 3, 4, 7

Part = tuple[int, int, bytes]
"""A field to write: its number, its kind, and its value as bytes."""


def read_struct(data: memoryview, at: int) -> tuple[dict[int, Any], int]:
    """The fields of the struct that begins there, by number, and where it ends.

    >>> read_struct(memoryview(struct(i32(1, -3), text(4, b"x"))), 0)
    ({1: -3, 4: b'x'}, 6)
    """
    found: dict[int, Any] = {}
    number = 0
    while head := data[at]:
        at += 1
        kind = head & 15
        if head >> 4:
            number += head >> 4
        else:
            raw, at = read_varint(data, at)
            number = _signed(raw)
        if kind in (_TRUE, _FALSE):
            found[number] = kind == _TRUE
        elif kind in (_I16, I32, I64):
            raw, at = read_varint(data, at)
            found[number] = _signed(raw)
        elif kind == TEXT:
            length, at = read_varint(data, at)
            found[number] = bytes(data[at : at + length])
            at += length
        elif kind == STRUCT:
            found[number], at = read_struct(data, at)
        elif kind in (_BYTE, _DOUBLE):
            at += 1 if kind == _BYTE else 8
        else:
            raise ValueError(f"kind {kind} of field {number} is not known")
    return found, at + 1


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number that begins there, seven bits a byte, and where it ends."""
    found = shift = 0
    while (byte := data[at]) > 127:
        found |= (byte & 127) << shift
        shift += 7
        at += 1
    return found | byte << shift, at + 1


def _signed(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)


def varint(value: int) -> bytes:
    """A number that is not negative, seven bits a byte."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def i32(number: int, value: int) -> Part:
    """A field with a number of 32 bits."""
    return number, I32, _zigzag(value)


def i64(number: int, value: int) -> Part:
    """A field with a number of 64 bits."""
    return number, I64, _zigzag(value)


def text(number: int, value: bytes) -> Part:
    """A field with a text."""
    return number, TEXT, varint(len(value)) + value


def flag(number: int, *, value: bool) -> Part:
    """A field that is true or false."""
    return number, _TRUE if value else _FALSE, b""


def nested(number: int, value: bytes) -> Part:
    """A field with a struct in it."""
    return number, STRUCT, value


def list_of(number: int, kind: int, values: list[bytes]) -> Part:
    """A field with a list of at most 14 values of one kind."""
    assert len(values) < 15
    return number, LIST, bytes([len(values) << 4 | kind]) + b"".join(values)


def struct(*parts: Part) -> bytes:
    """A struct of fields that stand in the order of their numbers, at most 15 apart."""
    found, last = bytearray(), 0
    for number, kind, value in parts:
        found.append((number - last) << 4 | kind)
        found += value
        last = number
    found.append(0)
    return bytes(found)
