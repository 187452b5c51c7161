"""Columns of Arrow out of Python values, without the detour that imports pandas.

`pyarrow.array` looks whether its argument is something of pandas, and imports it to know: that
takes longer than a whole command. Here only buffers are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence


def column(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Values, None among them, as an array: texts, bytes, numbers of 64 bits, or truths.

    >>> column(["a", None, "bc"], pa.string()).to_pylist()
    ['a', None, 'bc']
    >>> column([1, None], pa.int64()).to_pylist()
    [1, None]
    """
    is_there = np.fromiter((value is not None for value in values), bool, len(values))
    mask = None if is_there.all() else pa.py_buffer(_bits(is_there))
    if pa.types.is_string(type_):
        return _texts([(value or "").encode() for value in values], type_, mask)
    if pa.types.is_binary(type_):
        return _texts([value or b"" for value in values], type_, mask)
    if pa.types.is_boolean(type_):
        data: Any = _bits(np.fromiter((bool(value) for value in values), bool, len(values)))
    else:
        data = np.fromiter((value or 0 for value in values), np.int64, len(values)).tobytes()
    return pa.Array.from_buffers(type_, len(values), [mask, pa.py_buffer(data)])


def _texts(values: list[bytes], type_: pa.DataType, mask: pa.Buffer | None) -> pa.Array:
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    buffers = [mask, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(type_, len(values), buffers)


def _bits(truths: np.ndarray[Any, np.dtype[np.bool_]]) -> bytes:
    return np.packbits(truths, bitorder="little").tobytes()
