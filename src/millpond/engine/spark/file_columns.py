"""Many files as one scan, where what is known about each file is in partition columns of its own.

These are the file's number, its constants, and where the bits of its deleted rows stand in one
array of words that all files share. So a row is judged by its position and two numbers of its file.
`file_table.py` does the same with a join, for sessions and values that can't have this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.engine.spark.deleted import WORD_BITS, is_set, word_number, words_of
from millpond.engine.spark.frame import Frame
from millpond.engine.spark.partitions import Partitions, can_be_partitions
from millpond.engine.spark.rows import union_all
from millpond.plan.types import INTEGER, LONG, Field, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.files import FileScan, SourceFile

_MOST_FILES = 10_000
_MOST_WORDS = 1 << 21
"""Of one scan. A file takes some calls to the JVM; all words (16 MB) go to each task."""


def scan_with_file_columns(
    scan: FileScan, files: list[SourceFile], context: Context, *, ordered: bool
) -> Frame | None:
    """The rows of the files with their constants, without their deleted rows; None: can't be."""
    constants = [scan.columns.field(name) for name in scan.constants]
    if scan.reading.format != "parquet" or not can_be_partitions(files, constants, context):
        return None
    names = _Names(context, constants)
    keys = (names.ordinal, names.row) if ordered else ()
    hidden = dict(zip(scan.constants, names.constants, strict=True))
    columns = [context.column(hidden.get(f.name, f.name)).alias(f.name) for f in scan.columns]
    columns += context.columns(keys)
    members = [
        _read(scan, part, names, context, ordered=ordered).select(*columns)
        for part in _parts(files)
    ]
    return Frame(union_all(members), scan.columns, keys=keys)


@dataclass(frozen=True, slots=True)
class _Known:
    """A file, its number, and its deleted rows as words."""

    file: SourceFile
    number: int
    words: NDArray[np.int64]


def _parts(files: list[SourceFile]) -> Iterator[list[_Known]]:
    """The files of one scan each."""
    part: list[_Known] = []
    count = 0
    for number, file in enumerate(files):
        words = words_of(() if file.deleted is None else file.deleted, file.path)
        if part and (len(part) == _MOST_FILES or count + len(words) > _MOST_WORDS):
            yield part
            part, count = [], 0
        part.append(_Known(file, number, words))
        count += len(words)
    yield part


def _read(
    scan: FileScan, files: list[_Known], names: _Names, context: Context, *, ordered: bool
) -> DataFrame:
    has_deleted = any(known.file.deleted is not None for known in files)
    row = {names.row: "row_index"} if ordered or has_deleted else {}
    partitions = Partitions(names.columns, _values(files), by_file=True)
    paths = [known.file.path for known in files]
    df = scan.reading.read(paths, context, metadata=row, partitions=partitions)
    return df.filter(_is_live(names, files, context)) if has_deleted else df


class _Names:
    """Hidden names for the columns of files."""

    def __init__(self, context: Context, constants: list[Field]) -> None:
        self.ordinal, self.row, self.start, self.bits = (context.hidden() for _ in range(4))
        given = [Field(context.hidden(), field.type) for field in constants]
        self.constants = tuple(field.name for field in given)
        own = (
            Field(self.ordinal, INTEGER, nullable=False),
            Field(self.start, INTEGER, nullable=False),
            Field(self.bits, LONG, nullable=False),
        )
        self.columns = Struct((*own, *given))


def _values(files: list[_Known]) -> dict[str, tuple[Any, ...]]:
    """For each file: its number, where its words begin, how many bits they are, its constants."""
    found = {}
    start = 0
    for known in files:
        own = (known.number, start, len(known.words) * WORD_BITS)
        found[known.file.path] = (*own, *known.file.constants)
        start += len(known.words)
    return found


def _is_live(names: _Names, files: list[_Known], context: Context) -> Column:
    """Rows behind the last word of their file have no bit."""
    row, start = context.column(names.row), context.column(names.start)
    word = _all_words(files, context)[start + word_number(row, context)]
    live: Column = (row >= context.column(names.bits)) | ~is_set(word, row, context)
    return live


def _all_words(files: list[_Known], context: Context) -> Any:
    """The words of all files behind each other, as one value of a query of its own."""
    import numpy as np
    import pyarrow as pa
    from pyspark.sql import types as st

    flat = pa.array(np.concatenate([known.words for known in files]))
    offsets = pa.array([0, len(flat)], pa.int32())
    type_ = st.ArrayType(st.LongType(), containsNull=False)
    field = st.StructField(context.hidden(), type_, nullable=False)
    table = pa.table({field.name: pa.ListArray.from_arrays(offsets, flat)})
    return context.session.createDataFrame(table, st.StructType([field])).scalar()
