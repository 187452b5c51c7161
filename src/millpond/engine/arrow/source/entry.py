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


class Entry(NamedTuple):
    """A file to read: its path, its constants by name, and row positions to leave out."""

    path: str
    constants: dict[str, Any]
    """Values of columns that the file does not hold itself; entries may share them."""
    deleted: NDArray[np.int64] | None = None
    rows: int | None = None
    size: int | None = None


def repeated(value: Any, type_: DataType, rows: int) -> pa.Array:
    """A constant, for so many rows."""
    target = to_arrow(type_)
    width = target.bit_width // 8 if at.is_primitive(target) else 0
    if value is None or width not in (1, 2, 4, 8):  # booleans take a bit
        return pa.repeat(pa.scalar(value, target), rows)
    # Ten times as fast as `repeat`, which counts where files are large.
    one = np.frombuffer(pa.array([value], target).buffers()[1], f"u{width}", 1)
    return pa.Array.from_buffers(target, rows, [None, pa.py_buffer(np.repeat(one, rows))])
