"""Arrays of one nested column that were read in parts, put together without copying.

Both parts are the first rows of the same row group, so nulls, offsets and lengths agree; only the
members that were decoded differ.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as at


def merge(left: pa.Array, right: pa.Array) -> pa.Array:
    """One array with the members of both."""
    if at.is_struct(left.type):
        return _merge_structs(left, right)
    if at.is_list(left.type) and at.is_nested(left.type.value_type):
        end = left.offsets[-1].as_py()
        values = merge(left.values.slice(0, end), right.values.slice(0, end))
        field = left.type.value_field
        type_ = pa.list_(pa.field(field.name, values.type, field.nullable))
        buffers = list(left.buffers()[:2])
        return pa.Array.from_buffers(type_, len(left), buffers, left.null_count, children=[values])
    return right


def _merge_structs(left: pa.Array, right: pa.Array) -> pa.Array:
    fields, children = [], []
    for i in range(left.type.num_fields):
        field, child = left.type.field(i), left.field(i)
        other = right.type.get_field_index(field.name)
        if other >= 0:
            child = merge(child, right.field(other))
        fields.append(pa.field(field.name, child.type, field.nullable))
        children.append(child)
    for i in range(right.type.num_fields):
        field = right.type.field(i)
        if left.type.get_field_index(field.name) < 0:
            fields.append(field)
            children.append(right.field(i))
    return pa.Array.from_buffers(
        pa.struct(fields), len(left), [left.buffers()[0]], left.null_count, children=children
    )
