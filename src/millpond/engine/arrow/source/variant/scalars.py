"""Columns of plain values as values in Variant's binary encoding, which says their type first.

Whole numbers and decimals take the fewest bytes that hold them, whatever their column took: that is
what Spark makes of them, too, and to Variant they are the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.types as at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Encoded: TypeAlias = list[bytes | None]
"""A value for each row; None where there is none."""

NULL: Final = b"\x00"
_TRUE, _FALSE = bytes([1 << 2]), bytes([2 << 2])
_WHOLE: Final = ((1, 3), (2, 4), (4, 5), (8, 6))
"""How many bytes a whole number takes, and the number of that type."""
_DECIMAL: Final = ((4, 8, 9), (8, 9, 18), (16, 10, 38))
"""The same of decimals, and how many digits they have."""
_FIXED: Final = {
    pa.float64(): 7,
    pa.date32(): 11,
    pa.float32(): 14,
    pa.time64("us"): 17,
}
_BINARY, _STRING, _UUID = 15, 16, 20
_TIMES: Final = {("us", True): 12, ("us", False): 13, ("ns", True): 18, ("ns", False): 19}
"""By unit, and whether a time is an instant."""
_SHORT: Final = 63
"""The longest text, in bytes, whose length stands beside its type."""


def encoder(type_: pa.DataType) -> Callable[[pa.Array], Encoded] | None:
    """What encodes a column of this type; None if variants hold no such values.

    A value that can't be is a `ValueError`.
    """
    if at.is_dictionary(type_):
        return encoder(type_.value_type)
    if at.is_boolean(type_):
        return _booleans
    if at.is_signed_integer(type_):
        return _whole
    if at.is_decimal(type_):
        return _decimals if type_.precision <= _DECIMAL[-1][2] else None
    if at.is_string(type_) or at.is_large_string(type_) or at.is_string_view(type_):
        return _texts
    if is_bytes(type_):
        return _binaries
    if type_ == pa.uuid():
        return _uuids
    return _fixed if _number(type_) is not None else None


def is_bytes(type_: pa.DataType) -> bool:
    """Whether a type is of bytes, in any layout."""
    return bool(at.is_binary(type_) or at.is_large_binary(type_) or at.is_binary_view(type_))


def _number(type_: pa.DataType) -> int | None:
    """The number of a type whose values are stored as Arrow has them."""
    if at.is_timestamp(type_):
        return _TIMES.get((type_.unit, type_.tz is not None))
    return _FIXED.get(type_)


def _booleans(array: pa.Array) -> Encoded:
    known = {True: _TRUE, False: _FALSE, None: None}
    return [known[value] for value in array.to_pylist()]


def _whole(array: pa.Array) -> Encoded:
    return [None if value is None else _whole_number(value) for value in array.to_pylist()]


def _whole_number(value: int) -> bytes:
    bits = (value if value >= 0 else ~value).bit_length()
    width, number = next(kind for kind in _WHOLE if bits < 8 * kind[0])
    return bytes([number << 2]) + value.to_bytes(width, "little", signed=True)


def _decimals(array: pa.Array) -> Encoded:
    scale = array.type.scale
    return [
        None if raw is None else _decimal(int.from_bytes(raw, "little", signed=True), scale)
        for raw in _cells(array, array.type.byte_width)
    ]


def _decimal(unscaled: int, scale: int) -> bytes:
    digits = max(len(str(abs(unscaled))), scale)
    if digits > _DECIMAL[-1][2]:
        raise ValueError(f"is a number of {digits} digits, which no decimal has")
    width, number, _ = next(kind for kind in _DECIMAL if digits <= kind[2])
    return bytes([number << 2, scale]) + unscaled.to_bytes(width, "little", signed=True)


def _texts(array: pa.Array) -> Encoded:
    # As bytes: whether they are UTF-8 is not asked here, as it is not of other texts.
    wide = pa.large_binary()
    return [None if raw is None else _text(raw) for raw in array.cast(wide).to_pylist()]


def _text(raw: bytes) -> bytes:
    return bytes([len(raw) << 2 | 1]) + raw if len(raw) <= _SHORT else _sized(_STRING, raw)


def _binaries(array: pa.Array) -> Encoded:
    wide = pa.large_binary()
    return [None if raw is None else _sized(_BINARY, raw) for raw in array.cast(wide).to_pylist()]


def _sized(number: int, raw: bytes) -> bytes:
    return bytes([number << 2]) + len(raw).to_bytes(4, "little") + raw


def _uuids(array: pa.Array) -> Encoded:
    return _after(_UUID, array.storage.to_pylist())


def _fixed(array: pa.Array) -> Encoded:
    number = _number(array.type)
    assert number is not None
    return _after(number, _cells(array, array.type.bit_width // 8))


def _after(number: int, cells: Iterable[bytes | None]) -> Encoded:
    header = bytes([number << 2])
    return [None if raw is None else header + raw for raw in cells]


def _cells(array: pa.Array, width: int) -> Iterator[bytes | None]:
    """The bytes of each value; Arrow and Variant both begin with the lowest."""
    content = array.buffers()[1]
    if content is None:
        yield from [None] * len(array)
        return
    raw = memoryview(content)
    for i, valid in enumerate(array.is_valid().to_pylist(), array.offset):
        yield bytes(raw[i * width : (i + 1) * width]) if valid else None
