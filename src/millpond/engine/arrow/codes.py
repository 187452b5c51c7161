"""Sort and group keys as plain arrays whose natural order and equality are the plan's.

Floating point numbers become whole numbers in the same order: NaN is one value and the largest,
`-0.0` is `0.0`. All other types order and compare in Arrow as they do in a plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from millpond.engine.arrow.source.longtext import joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from millpond.plan.bound import BoundSortKey


class Order(NamedTuple):
    """A key's direction and where its nulls go."""

    descending: bool = False
    nulls_first: bool = False


def order_of(key: BoundSortKey) -> Order:
    """The order that a sort key asks for."""
    return Order(key.descending, key.nulls_first)


def to_code(array: pa.Array) -> pa.Array:
    """A key column with the plan's order; `from_code` leads back."""
    if not at.is_floating(array.type):
        return array
    wide = array.type == pa.float64()
    whole, bits = (np.int64, 63) if wide else (np.int32, 31)
    given = _filled(array)
    values = _room(len(given), np.float64 if wide else np.float32)
    np.add(given, 0.0, out=values)  # -0.0 becomes 0.0
    nan = np.isnan(values)
    if nan.any():
        values[nan] = np.nan
    codes: NDArray[Any] = values.view(whole)
    flips = _room(len(given), whole)
    np.right_shift(codes, bits, out=flips)
    flips &= np.iinfo(whole).max
    codes ^= flips
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(codes, mask=mask)


def from_code(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The key that a code stands for."""
    if not at.is_floating(type_):
        return array
    bits = 63 if type_ == pa.float64() else 31
    codes = _filled(array)
    values = (codes ^ ((codes >> bits) & np.iinfo(codes.dtype).max)).view(type_.to_pandas_dtype())
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(values, type_, mask=mask)


def permutation(
    codes: Sequence[pa.Array | pa.ChunkedArray], orders: Sequence[Order]
) -> NDArray[np.int64]:
    """The positions of the rows in the order of their keys; equal rows stay as they were."""
    columns = [_ranked(code) for code in codes]
    if len(columns) == 1:
        numbers = _as_numbers(columns[0])
        if numbers is not None:
            return _by_number(columns[0], numbers, orders[0])
    names = [str(i) for i in range(len(columns))]
    keys = [
        (
            name,
            "descending" if order.descending else "ascending",
            "at_start" if order.nulls_first else "at_end",
        )
        for name, order in zip(names, orders, strict=True)
    ]
    found = pc.sort_indices(pa.table(columns, names), sort_keys=keys)
    positions: NDArray[np.int64] = found.to_numpy().view(np.int64)
    return positions


def _by_number(code: pa.Array, numbers: NDArray[np.int64], order: Order) -> NDArray[np.int64]:
    """One key of whole numbers: numpy sorts it fastest, and nulls are put aside."""
    if order.descending:
        numbers = ~numbers
    if not code.null_count:
        return _argsort(numbers)
    null = code.is_null().to_numpy(zero_copy_only=False)
    nulls, rest = np.flatnonzero(null), np.flatnonzero(~null)
    rest = rest[_argsort(numbers[rest])]
    return np.concatenate([nulls, rest] if order.nulls_first else [rest, nulls])


def _argsort(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """A stable order. numpy's other sort is several times as fast, so use it and mend ties."""
    order = np.argsort(numbers)
    ranked = numbers[order]
    ties = ranked[1:] == ranked[:-1]
    if not ties.any():
        return order
    groups = np.concatenate([[0], np.cumsum(~ties)]) * len(numbers)
    mended = groups + order
    mended.sort()
    found: NDArray[np.int64] = mended - groups
    return found


def _as_numbers(code: pa.Array) -> NDArray[np.int64] | None:
    """The codes as whole numbers, nulls as any; None for types that numpy can't sort as such."""
    type_ = code.type
    if at.is_boolean(type_):
        code = code.cast(pa.int8())
    elif at.is_date32(type_):
        code = code.view(pa.int32())
    elif at.is_timestamp(type_):
        code = code.view(pa.int64())
    elif not at.is_integer(type_):
        return None
    return _filled(code)


def _filled(array: pa.Array) -> NDArray[Any]:
    """The values as numpy's, with nulls as anything."""
    # Filling copies even where there is nothing to fill.
    filled = array.fill_null(0) if array.null_count else array
    values: NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return values


def _room(count: int, type_: type[Any]) -> NDArray[Any]:
    """Memory of Arrow's, which uses it again; what numpy frees is paged in anew each time."""
    return np.frombuffer(pa.allocate_buffer(count * np.dtype(type_).itemsize), type_)


def _ranked(code: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Texts that repeat as the ranks of the different ones, which sort faster; others as is."""
    if isinstance(code, pa.ChunkedArray):
        code = joined(code)
    if not (at.is_string(code.type) or at.is_binary(code.type)) or len(code) < 1000:
        return code
    encoded = code.dictionary_encode()
    if len(encoded.dictionary) > len(code) // 2:
        return code
    by_rank = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(by_rank), np.int32)
    ranks[by_rank] = np.arange(len(by_rank), dtype=np.int32)
    return pa.array(ranks).take(encoded.indices)
