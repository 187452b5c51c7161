"""Deleted rows of files as bits in 64-bit words, which Spark looks up by a row's position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from millpond.base.errors import MillpondError, ObjectNotFoundError, SourceError
from millpond.engine.spark.stored import footer_bytes
from millpond.engine.spark.types import to_cast
from millpond.plan.types import INTEGER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from pyspark.sql import Column

    from millpond.engine.spark.context import Context

WORD_BITS = 64
_LOG_BITS = 6
_MANY_ROWS = 1 << 27
"""Whether a file has more rows than this is looked up: as many bits are 16 MB."""


def words_of(positions: Sequence[int], path: str = "") -> NDArray[np.int64]:
    """The positions as bits, up to the last one that the file at this path may have.

    >>> words_of([0, 3, 64]).tolist()
    [9, 1]
    """
    at = np.asarray(positions, dtype=np.int64)
    if len(at) and at.max() >= _MANY_ROWS:
        at = at[at < _row_count(path)]
    if not len(at):
        return np.array([], np.int64)
    is_deleted = np.zeros((int(at.max()) // WORD_BITS + 1) * WORD_BITS, dtype=np.bool_)
    is_deleted[at] = True
    return np.packbits(is_deleted, bitorder="little").view("<i8")


def _row_count(path: str) -> int:
    """How many rows a file has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(pa.BufferReader(footer_bytes(path))).num_rows)
    except (OSError, pa.ArrowException, MillpondError) as error:
        raise SourceError(
            f"{path} can't be read here, and its deletion vector names rows up to a very high one",
            engine="spark",
            path=path,
            missing=isinstance(error, ObjectNotFoundError),
            hint="read it where the driver can open it, or with the Arrow engine",
        ) from error


def word_number(row: Column, context: Context) -> Column:
    """Which word a row's bit is in."""
    found: Column = context.functions.shiftright(row, _LOG_BITS).cast(to_cast(INTEGER))
    return found


def is_set(word: Column, row: Column, context: Context) -> Column:
    """Whether the bit of a row is set in its word."""
    f = context.functions
    bit = row.bitwiseAND(f.lit(WORD_BITS - 1)).cast(to_cast(INTEGER))
    found: Column = f.getbit(word, bit) != f.lit(0)
    return found
