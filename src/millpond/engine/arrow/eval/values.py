"""Values on their way through kernels: arrays and lazy scalars, raw numpy views, and data errors.

A literal stays a scalar for as long as kernels allow; `to_array` is where it becomes a column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.base.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millpond.plan.bound import BoundExpr

Value: TypeAlias = pa.Array | pa.Scalar
Kernel: TypeAlias = "Callable[[BoundExpr, Sequence[Value]], Value]"

_SHOWN = 300


def fail(expr: BoundExpr, what: str, *, hint: str) -> EvaluationError:
    """The error of a value that an expression can't work with."""
    text = str(expr)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return EvaluationError(f"{what} in {shown}", engine="arrow", hint=hint)


def show(value: Any) -> str:
    """A value in an error message, cut where it is long."""
    text = repr(value) if isinstance(value, str | bytes) else str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def is_scalar(value: Value) -> bool:
    """Whether one value stands for every row."""
    return isinstance(value, pa.Scalar)


def to_array(value: Value, length: int) -> pa.Array:
    """The value as a column of this length."""
    if not isinstance(value, pa.Scalar):
        return value
    return pa.repeat(value, length) if value.is_valid else pa.nulls(length, value.type)


def as_columns(args: Sequence[Value]) -> list[pa.Array]:
    """Arguments, of which at least one is a column, all as columns."""
    length = next(len(arg) for arg in args if not is_scalar(arg))
    return [to_array(arg, length) for arg in args]


def raw(array: pa.Array) -> np.ndarray[Any, Any]:
    """The numbers of a fixed-width column without a copy; under nulls stands anything."""
    kind = array.type
    dtype: np.dtype[Any]
    if pa.types.is_timestamp(kind):
        dtype = np.dtype(np.int64)
    elif pa.types.is_date32(kind):
        dtype = np.dtype(np.int32)
    else:
        dtype = np.dtype(kind.to_pandas_dtype())
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)


def null_mask(*arrays: pa.Array) -> np.ndarray[Any, Any] | None:
    """Where one of the columns is null, or None when none is anywhere."""
    mask: np.ndarray[Any, Any] | None = None
    for array in arrays:
        if array.null_count:
            nulls = _nulls(array)
            mask = nulls if mask is None else mask | nulls
    return mask


def _nulls(array: pa.Array) -> np.ndarray[Any, Any]:
    validity = array.buffers()[0]
    if validity is None:  # a column of nothing but nulls has no such buffer
        return array.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    skipped, bit = divmod(array.offset, 8)
    packed = np.frombuffer(validity, np.uint8)[skipped:]
    is_there = np.unpackbits(packed, count=bit + len(array), bitorder="little")[bit:]
    return np.equal(is_there, 0)


def from_raw(
    numbers: np.ndarray[Any, Any], type_: pa.DataType, mask: np.ndarray[Any, Any] | None
) -> pa.Array:
    """Numbers as a column of a fixed-width type, null where the mask is true."""
    array = pa.array(numbers, mask=mask)
    return array if array.type == type_ else array.view(type_)


def map_unique(function: Callable[[Any], Any], array: pa.Array, type_: pa.DataType) -> pa.Array:
    """A Python function over each different value once; null stays null."""
    encoded = array.dictionary_encode()
    mapped = pa.array([function(item) for item in encoded.dictionary.to_pylist()], type_)
    return mapped.take(encoded.indices)


def true_count(mask: pa.BooleanArray) -> int:
    """How many rows are true."""
    return int(mask.true_count)


def all_true(mask: Value) -> bool:
    """Whether no row is false; nulls do not count."""
    return pc.all(mask).as_py() is not False
