"""Arrow layouts: what a column must look like before kernels see it, and when it leaves.

Files and users bring dictionaries, large strings, lists whose child is called `item`. `plain` turns
the odd layouts into plain ones; `conform` gives a column exactly the type that a plan promises.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from millpond.plan.arrow import from_arrow, to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN_PRIMITIVES = frozenset(
    {
        *(pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()),
        *(pa.timestamp("us"), pa.timestamp("us", tz="UTC")),
    }
)


def plain(array: pa.Array) -> pa.Array:
    """The column in the plain layout of its values; the same object where it has it already."""
    if _is_plain(array.type):
        return array
    return conform(array, to_arrow(from_arrow(array.type)))


@lru_cache(maxsize=1024)
def _is_plain(type_: pa.DataType) -> bool:
    return all(_is_plain_layer(layer) for layer in _layers(type_))


def _layers(type_: pa.DataType) -> Iterator[pa.DataType]:
    todo = [type_]
    while todo:
        layer = todo.pop()
        yield layer
        if pa.types.is_nested(layer):
            todo.extend(layer.field(i).type for i in range(layer.num_fields))


def _is_plain_layer(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        return False
    return (
        type_ in _PLAIN_PRIMITIVES
        or pa.types.is_decimal128(type_)
        or pa.types.is_list(type_)
        or pa.types.is_struct(type_)
        or pa.types.is_map(type_)
    )


def conform(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The same values as exactly this type: other child names, nullability or layout."""
    have = array.type
    if have == type_:
        return array
    if isinstance(have, pa.BaseExtensionType):
        return conform(array.storage, type_)
    if pa.types.is_list(have) and pa.types.is_list(type_):
        child = conform(array.values, type_.value_type)
        return pa.Array.from_buffers(
            type_, len(array), array.buffers()[:2], array.null_count, array.offset, [child]
        )
    if pa.types.is_struct(have) and pa.types.is_struct(type_):
        return _conform_struct(array, type_)
    if pa.types.is_map(have) and pa.types.is_map(type_):
        return _conform_map(array, type_)
    if pa.types.is_dictionary(have) or pa.types.is_run_end_encoded(have):
        return conform(_decode(array), type_)
    if pa.types.is_large_list(have) or pa.types.is_fixed_size_list(have):
        return conform(array.cast(pa.list_(have.value_field)), type_)
    return array.cast(type_)


def _decode(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    return pa.compute.run_end_decode(array)


def _conform_struct(array: pa.StructArray, type_: pa.StructType) -> pa.Array:
    if type_.num_fields == 0:
        return pa.Array.from_buffers(type_, len(array), array.buffers()[:1], offset=array.offset)
    fields = list(type_)
    children = [conform(array.field(i), field.type) for i, field in enumerate(fields)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _conform_map(array: pa.MapArray, type_: pa.MapType) -> pa.Array:
    keys = conform(array.keys, type_.key_type)
    items = conform(array.items, type_.item_type)
    entries = pa.StructArray.from_arrays([keys, items], fields=[type_.key_field, type_.item_field])
    return pa.Array.from_buffers(
        type_, len(array), array.buffers()[:2], array.null_count, array.offset, [entries]
    )
