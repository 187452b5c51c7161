"""Texts and bytes that a file's writer had as views: pyarrow reads them so, but can't choose rows.

Which layout a writer had in memory stands in the footer's Arrow schema; deltalake writes it.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pyarrow.types as at


def without_views(array: pa.Array) -> pa.Array:
    """The same values, at any depth, as plain texts and bytes.

    >>> without_views(pa.array(["a", None], pa.string_view())).type
    DataType(string)
    """
    wanted = _plain(array.type)
    return array if wanted is array.type else array.cast(wanted)


def has_views(schema: pa.Schema) -> bool:
    """Whether some column has them, at any depth."""
    return any(_plain(type_) is not type_ for type_ in schema.types)


@cache
def _plain(type_: pa.DataType) -> pa.DataType:
    """The type without views; the very same one if it has none."""
    if at.is_string_view(type_):
        return pa.string()
    if at.is_binary_view(type_):
        return pa.binary()
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
