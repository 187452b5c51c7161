"""Paths into columns: struct members, map values, list elements, and `[*]` for each element.

No step copies values except `[i]` and map lookups, which take one element a row. What lies under a
null parent is null: `pc.struct_field` sees to that, `StructArray.field` would not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.base.errors import SchemaError
from millpond.engine.arrow.eval.elements import Spread, list_offsets, spread
from millpond.engine.arrow.eval.layout import conform, plain
from millpond.plan.arrow import to_arrow
from millpond.plan.paths import Each, Index, Name

if TYPE_CHECKING:
    from millpond.plan.bound import BoundPath
    from millpond.plan.paths import Step


def column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of a batch in plain layout."""
    at = batch.schema.get_field_index(name)
    if at < 0:
        raise SchemaError(
            f"there is no column {name!r} in this batch", hint=f"it has: {batch.schema.names}"
        )
    return plain(batch.column(at))


def walk(path: BoundPath, root: pa.RecordBatch | pa.Array) -> pa.Array:
    """The values at the end of a path, one for each row or element of the root."""
    steps = path.steps
    if isinstance(root, pa.RecordBatch):
        first = steps[0]
        assert isinstance(first, Name)
        current, steps = column(root, first.name), steps[1:]
    else:
        current = root
    return conform(_follow(current, steps), to_arrow(path.type))


def _follow(current: pa.Array, steps: tuple[Step, ...]) -> pa.Array:
    opened: list[Spread] = []
    for step in steps:
        if isinstance(step, Name):
            current = _member(current, step.name)
        elif isinstance(step, Index):
            current = _element_at(current, step.index)
        else:
            assert isinstance(step, Each)
            opened.append(spread(current))
            current = opened[-1].values
    for lists in reversed(opened):
        current = lists.gather(current, pa.list_(pa.field("element", current.type)))
    return current


def _member(array: pa.Array, name: str) -> pa.Array:
    if pa.types.is_map(array.type):
        return _map_value(array, name)
    return pc.struct_field(array, [name])


def _map_value(maps: pa.MapArray, key: str) -> pa.Array:
    """The value of the first entry with this key, null where there is none."""
    offsets = list_offsets(maps)
    low, high = int(offsets[0]), int(offsets[-1])
    match = pc.equal(maps.keys.slice(low, high - low), pa.scalar(key, maps.type.key_type))
    hits = pc.indices_nonzero(match).to_numpy().astype(np.int64) + low
    if not len(hits):
        return pa.nulls(len(maps), maps.type.item_type)
    at = np.searchsorted(hits, offsets[:-1])
    entry = np.append(hits, high)[at]
    missing = entry >= offsets[1:]
    if maps.null_count:
        missing |= maps.is_null().to_numpy(zero_copy_only=False)
    return maps.items.take(pa.array(entry, mask=missing))


def _element_at(lists: pa.Array, index: int) -> pa.Array:
    """One element of each list, null where the list is null or too short."""
    offsets = list_offsets(lists).astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    at = (starts if index >= 0 else ends) + index
    missing = (at >= ends) | (at < starts)
    if lists.null_count:
        missing |= lists.is_null().to_numpy(zero_copy_only=False)
    return lists.values.take(pa.array(at, mask=missing))
