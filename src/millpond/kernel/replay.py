"""Row filters of log replay: they see actions newest first and keep what still holds.

State is gathered while rows stream past. A run begins with none, and hands what it has gathered to
its definition only when it has seen everything: a run that failed leaves no trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.base.errors import CorruptLogError, MachineStateError
from millpond.kernel.paths import canonical, spellings

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from numpy.typing import NDArray


@dataclass(frozen=True)
class FirstOfEach:
    """For each of some columns, the first row in which it is not null."""

    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its registered name."""
        return "first_of_each"

    @property
    def config(self) -> Mapping[str, Any]:
        """The columns."""
        return {"columns": list(self.columns)}

    def open(self) -> _FirstRun:
        """Begin a run."""
        return _FirstRun(set(self.columns))


class _FirstRun:
    def __init__(self, missing: set[str]) -> None:
        self._missing = missing

    def apply(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Which rows bring something that was missing."""
        keep = np.zeros(batch.num_rows, bool)
        for name in tuple(self._missing):
            column = batch.column(name)
            if column.null_count < len(column):
                keep[pc.index(column.is_valid(), True).as_py()] = True
                self._missing.discard(name)
        return pa.array(keep)

    def finish(self) -> None:
        """Nothing is left to do."""


KEY_COLUMNS: Final = ("version", "is_add", "key_path", "dv_type", "dv_path", "dv_offset")

Key = tuple[str, str | None]
"""A file of a table: its canonical path, and its deletion vector's unique id."""
_Name = str | tuple[str, str]
"""The same where there are millions: a file without a deletion vector is its path alone."""


@dataclass(frozen=True)
class AddRemoveDedup:
    """Of the actions for a file, newest first, the first one counts; adds that count are kept.

    `seen` is there when a run has come to its end: all files that any action was about. In one
    commit the order of actions means nothing, and an add counts before a remove. A compaction
    (`version` is -1) should tell of a file once; those that do more often have the newest first.
    """

    table: str = ""
    keep_removes: bool = False
    """Removes that count are kept, too: what an incremental scan is about."""
    _seen: list[set[_Name]] = field(default_factory=list, compare=False)

    @property
    def name(self) -> str:
        """Its registered name."""
        return "add_remove_dedup"

    @property
    def columns(self) -> tuple[str, ...]:
        """What makes an action's key."""
        return KEY_COLUMNS

    @property
    def config(self) -> Mapping[str, Any]:
        """The table, for errors."""
        return {"table": self.table, "keep_removes": self.keep_removes}

    def open(self) -> _DedupRun:
        """Begin a run."""
        return _DedupRun(self)

    @property
    def seen(self) -> Set[_Name]:
        """The files that actions were about."""
        if not self._seen:
            raise MachineStateError(
                "the commits have not been read to their end",
                table=self.table,
                hint="iterate the machine to the end of this phase",
            )
        return self._seen[-1]

    def finished(self, seen: set[_Name]) -> None:
        """A run has come to its end."""
        self._seen[:] = [seen]

    def tombstones(self) -> pa.Table:
        """What no older action may bring back, in every spelling: path and deletion vector."""
        paths: list[str] = []
        vectors: list[str | None] = []
        for name in self.seen:
            path, vector = (name, None) if isinstance(name, str) else name
            for spelling in spellings(path):
                paths.append(spelling)
                vectors.append(vector)
        columns = [pa.array(paths, pa.string()), pa.array(vectors, pa.string())]
        return pa.table(columns, names=["path", "dv"])


class _DedupRun:
    def __init__(self, owner: AddRemoveDedup) -> None:
        self._owner = owner
        self._seen: set[_Name] = set()
        self._once: list[list[_Name]] | None = []
        """The batches before the first one that names a file again; None from there on."""
        self._removed: dict[_Name, int] = {}
        """Files whose remove counts, and the commit that has it."""

    def apply(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Which rows count."""
        columns = {name: batch.column(name) for name in KEY_COLUMNS}
        paths = columns["key_path"].to_pylist()
        is_add = columns["is_add"].to_numpy(zero_copy_only=False)
        if columns["key_path"].null_count:
            raise self._no_path(columns["version"][paths.index(None)].as_py())
        if pc.any(pc.starts_with(columns["key_path"], "file:", ignore_case=True)).as_py():
            paths = [canonical(path) for path in paths]
        names: list[_Name] = paths
        if columns["dv_type"].null_count < batch.num_rows:
            parts = (columns[n].to_pylist() for n in ("dv_type", "dv_path", "dv_offset"))
            vectors = (unique_id(*part) for part in zip(*parts, strict=True))
            both = zip(paths, vectors, strict=True)
            names = [path if vector is None else (path, vector) for path, vector in both]
        return pa.array(self._counting(names, columns["version"].to_numpy(), is_add))

    def _counting(
        self, names: list[_Name], versions: NDArray[np.int64], is_add: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which rows count; only where a file is named again are rows looked at one by one."""
        keep: NDArray[np.bool_] = is_add | self._owner.keep_removes
        if self._are_new(names):
            if not is_add.all():
                removes = ~is_add
                gone = compress(names, removes.tolist())
                self._removed.update(zip(gone, versions[removes].tolist(), strict=True))
            return keep
        here = set(names)
        keep &= self._judged(names, versions, is_add, here - self._seen)
        # A set finds a text by the hash that it holds; a dictionary would look at the text for it.
        self._seen |= here
        return keep

    def _are_new(self, names: list[_Name]) -> bool:
        """Whether no file was named before, nor is named twice; then they have been seen now.

        As long as that was always so they are put to the others without looking first, which would
        take as long again; the lists are kept to undo it.
        """
        if self._once is None:
            here = set(names)
            if len(here) < len(names) or not self._seen.isdisjoint(here):
                return False
            self._seen |= here
            return True
        before = len(self._seen)
        self._seen.update(names)
        if len(self._seen) == before + len(names):
            self._once.append(names)
            return True
        self._seen = set().union(*self._once)
        self._once = None
        return False

    def _judged(
        self,
        names: list[_Name],
        versions: NDArray[np.int64],
        is_add: NDArray[np.bool_],
        new: set[_Name],
    ) -> NDArray[np.bool_]:
        """Which rows count, one by one; `new` are the files that no batch before was about."""
        counts = np.zeros(len(names), bool)
        rows = zip(names, versions.tolist(), is_add.tolist(), strict=True)
        for row, (name, version, adds) in enumerate(rows):
            if name in new:
                new.remove(name)
                counts[row] = True
                if not adds:
                    self._removed[name] = version
            # An add counts although a remove of the same commit stood before it.
            elif adds and version >= 0 and self._removed.get(name) == version:
                del self._removed[name]
                counts[row] = True
        return counts

    def _no_path(self, version: int) -> CorruptLogError:
        return CorruptLogError(
            f"an action of version {version} of {self._owner.table} has no path",
            table=self._owner.table,
            hint="the log is damaged: restore it from a backup",
        )

    def finish(self) -> None:
        """Hand over what was seen."""
        self._owner.finished(self._seen)


def unique_id(kind: str | None, path: str | None, offset: int | None) -> str | None:
    """What tells one deletion vector from another."""
    if kind is None:
        return None
    return f"{kind}{path or ''}" + ("" if offset is None else f"@{offset}")
