"""Texts and bytes in the layout that all operators know: with 32-bit offsets, and no views.

Which layout a writer had in memory stands in the footer's Arrow schema; deltalake writes it. Files
without one are read with 64-bit offsets, into which pyarrow decodes texts a sixth faster.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pyarrow.types as at


def as_plain(array: pa.Array) -> pa.Array:
    """The same values, at any depth, as plain texts and bytes; as it is, if they are too many.

    >>> as_plain(pa.array(["a", None], pa.string_view())).type
    DataType(string)
    """
    wanted = _plain(array.type)
    if wanted is array.type:
        return array
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid:  # more than 2 GB; who needs fewer rows of it may have them
        return array


def not_plain(schema: pa.Schema) -> frozenset[str]:
    """The columns that have another layout, at any depth."""
    return frozenset(field.name for field in schema if _plain(field.type) is not field.type)


def joined(column: pa.ChunkedArray) -> pa.Array:
    """The chunks as one array, with 64-bit offsets if need be."""
    if column.num_chunks == 1:
        return column.chunk(0)
    try:
        return column.combine_chunks()
    except pa.ArrowInvalid:
        if column.type not in _LONG:
            raise
        return column.cast(_LONG[column.type]).combine_chunks()


_LONG = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
_PLAIN = {
    pa.string_view(): pa.string(),
    pa.large_string(): pa.string(),
    pa.binary_view(): pa.binary(),
    pa.large_binary(): pa.binary(),
}


@cache
def _plain(type_: pa.DataType) -> pa.DataType:
    """The type in that layout; the very same one if it has it."""
    if type_ in _PLAIN:
        return _PLAIN[type_]
    if at.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        plain = [field.with_type(_plain(field.type)) for field in fields]
        return _changed(type_, pa.struct(plain))
    if at.is_map(type_):
        item = type_.item_field
        keys, items = _plain(type_.key_type), item.with_type(_plain(item.type))
        return _changed(type_, pa.map_(type_.key_field.with_type(keys), items))
    if at.is_fixed_size_list(type_):
        return _changed(type_, pa.list_(_element(type_), type_.list_size))
    if at.is_large_list(type_):
        return _changed(type_, pa.large_list(_element(type_)))
    if at.is_list(type_):
        return _changed(type_, pa.list_(_element(type_)))
    return type_


def _element(type_: pa.DataType) -> pa.Field:
    field = type_.value_field
    return field.with_type(_plain(field.type))


def _changed(type_: pa.DataType, plain: pa.DataType) -> pa.DataType:
    return type_ if plain == type_ else plain
