"""No file is live twice, with this deletion vector and with that, or with none: its rows would be.

By the protocol a commit must not add a path again with another vector unless it removes the one
that was there, and readers know files by path and vector, so both are live if it does. Which of
them was meant nobody can say: the newer one may lack what the older one deletes, and a checkpoint
does not tell which that is. So no rows are read. Looked at is only what has a vector, and not
before rows are wanted: a listing of millions of files costs nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from millpond.base.errors import CorruptLogError
from millpond.kernel.distinct import numbers_of
from millpond.kernel.paths import resolve_all

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_KEY: Final = ("path", "deletionVector")


def check_once(table: str, files: pa.Table) -> None:
    """Refuse files of a table if one that has a deletion vector is among them more than once."""
    import pyarrow.compute as pc

    vectors = files.column("deletionVector")
    if vectors.null_count == len(vectors):
        return
    paths = resolve_all(table, files.column("path"))
    marked = paths.filter(vectors.is_valid().combine_chunks()).unique()
    same = paths.filter(pc.is_in(paths, value_set=marked))
    if len(same) == len(marked):
        return
    found = same.value_counts()
    twice = found.field("values").filter(pc.greater(found.field("counts"), 1))
    raise CorruptLogError(
        f"{twice[0]} is live more than once in {table}, and has a deletion vector: "
        "its rows would come more than once",
        table=table,
        hint="some commit added it again without removing what was there: an older version may "
        "still be readable, and a commit that removes one of the two mends the table",
    )


class Repeats:
    """Whether a file with a deletion vector may have come before, chunk after chunk of files.

    Of the chunks before, a number for each path is kept.
    """

    def __init__(self) -> None:
        self._last: pa.Table | None = None
        """Without a second chunk there is nothing to do."""
        self._paths: NDArray[np.uint64] | None = np.array([], np.uint64)
        """None: some path is too long for a number."""
        self._marked = np.array([], np.uint64)

    def may_be_in(self, files: pa.Table) -> bool:
        """Whether one may be among these, or one of these among those before."""
        last, self._last = self._last, files.select(list(_KEY))
        if last is not None:
            self._add(last)
        paths = None if last is None or self._paths is None else _numbers(files)
        if paths is None or self._paths is None:
            return last is not None
        marked = paths[_marks(files)]
        return _meet(paths, self._marked) or _meet(self._paths, marked)

    def _add(self, files: pa.Table) -> None:
        numbers = _numbers(files)
        if numbers is None or self._paths is None:
            self._paths = None
            return
        self._paths = np.concatenate([self._paths, numbers])
        self._marked = np.concatenate([self._marked, numbers[_marks(files)]])


def _numbers(files: pa.Table) -> NDArray[np.uint64] | None:
    return numbers_of(files.column("path").combine_chunks())


def _marks(files: pa.Table) -> NDArray[np.bool_]:
    marks: NDArray[np.bool_] = files.column("deletionVector").is_valid().to_numpy()
    return marks


def _meet(these: NDArray[np.uint64], those: NDArray[np.uint64]) -> bool:
    return bool(len(those)) and bool(np.isin(these, those).any())
