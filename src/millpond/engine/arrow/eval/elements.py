"""Lists as offsets and elements: the one shape that paths, quantifiers and list casts work on.

Elements may hide under null lists. They are harmless to paths; whoever computes with elements, and
could fail, looks at the visible ones only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Numbers: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Spread:
    """A list column taken apart: list `i` is `values[offsets[i]:offsets[i + 1]]`."""

    lists: pa.Array
    offsets: Numbers
    values: pa.Array

    def gather(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        """Lists of the same lengths and nulls over other values, one for each of ours."""
        mask = self.lists.is_null() if self.lists.null_count else None
        return pa.ListArray.from_arrays(pa.array(self.offsets), values, type=type_, mask=mask)

    def hidden(self) -> Numbers | None:
        """Which elements lie under null lists, or None when none does."""
        if not self.lists.null_count:
            return None
        null = self.lists.is_null().to_numpy(zero_copy_only=False)
        if not (null & (self.offsets[1:] != self.offsets[:-1])).any():
            return None
        return np.repeat(null, np.diff(self.offsets))

    def visible(self) -> Spread:
        """The same lists over elements that they show, and no others."""
        hidden = self.hidden()
        if hidden is None:
            return self
        values = self.values.filter(pa.array(~hidden))
        return Spread(self.lists, self.visible_offsets(), values)

    def visible_offsets(self) -> Numbers:
        """Where lists start when the elements under null lists are left out."""
        lengths = np.diff(self.offsets)
        lengths[self.lists.is_null().to_numpy(zero_copy_only=False)] = 0
        starts = np.zeros(len(self.lists) + 1, np.int32)
        np.cumsum(lengths, out=starts[1:])
        return starts


def spread(lists: pa.Array) -> Spread:
    """A list column as offsets from 0 and the elements between the first and the last."""
    offsets = list_offsets(lists)
    low, high = int(offsets[0]), int(offsets[-1])
    values = lists.values
    if low == 0 and high == len(values):
        return Spread(lists, offsets, values)
    return Spread(lists, offsets - offsets[0], values.slice(low, high - low))


def list_offsets(lists: pa.Array) -> Numbers:
    """Where each list of a list or map column starts in its values; one more for the end."""
    buffer = lists.buffers()[1]
    if buffer is None or len(lists) == 0:
        return np.zeros(len(lists) + 1, np.int32)
    return np.frombuffer(buffer, np.int32, len(lists) + 1, lists.offset * 4)
