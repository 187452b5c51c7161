"""More text than one Arrow array takes, which is 2 GB: such rows are given in smaller parts.

Texts are read with 64-bit offsets (`described.py`); rows that are given have 32-bit ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from millpond.base.errors import SourceError
from millpond.engine.arrow.source.files import ENGINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

T = TypeVar("T")
MOST_BYTES = int(np.iinfo(np.int32).max)


TEXTS = (pa.string(), pa.large_string())
LONG = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


class TooLong(Exception):  # noqa: N818 - whoever has the file makes an error of it
    """The texts or bytes do not fit into one array."""


class LongTextError(SourceError):
    """Rows of a file that have too much text to be one batch."""

    def __init__(self, path: str, column: str) -> None:
        super().__init__(
            f"column {column} of {path} has more than 2 GB in the rows that are needed at once",
            engine=ENGINE,
            path=path,
            hint="write the file with smaller row groups",
        )


def bisected(
    rows: NDArray[np.int64], make: Callable[[NDArray[np.int64]], T]
) -> Iterator[tuple[NDArray[np.int64], T]]:
    """What is made of some rows, or of their halves, or of the halves of those."""
    try:
        made = make(rows)
    except LongTextError:
        if len(rows) < 2:
            raise
    else:
        yield rows, made
        return
    for half in np.array_split(rows, 2):
        yield from bisected(half, make)


def joined(column: pa.ChunkedArray) -> pa.Array:
    """The chunks as one array, with 64-bit offsets if need be."""
    if column.num_chunks == 1:
        return column.chunk(0)
    try:
        return column.combine_chunks()
    except pa.ArrowInvalid:
        if column.type not in LONG:
            raise
        return column.cast(LONG[column.type]).combine_chunks()
