"""A file of a scan, and what it brings along that it does not hold itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from millpond.plan.arrow import to_arrow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from millpond.plan.types import DataType


class Constant(NamedTuple):
    """The value of a column that a file does not hold itself."""

    value: Any
    type: DataType

    def repeat(self, rows: int) -> pa.Array:
        """This value, for so many rows."""
        type_ = to_arrow(self.type)
        width = type_.bit_width // 8 if at.is_primitive(type_) else 0
        if self.value is None or width not in (1, 2, 4, 8):  # booleans take a bit
            return pa.repeat(pa.scalar(self.value, type_), rows)
        # Ten times as fast as `repeat`, which counts where files are large.
        one = np.frombuffer(pa.array([self.value], type_).buffers()[1], f"u{width}", 1)
        return pa.Array.from_buffers(type_, rows, [None, pa.py_buffer(np.repeat(one, rows))])


class Entry(NamedTuple):
    """A file to read: its path, its constants by name, and row positions to leave out."""

    path: str
    constants: dict[str, Constant]
    deleted: NDArray[np.int64] | None = None
    rows: int | None = None
    size: int | None = None
