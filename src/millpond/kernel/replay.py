"""Row filters of log replay: they see actions newest first and keep what still holds.

State is gathered while rows stream past. A run begins with none, and hands what it has gathered to
its definition only when it has seen everything: a run that failed leaves no trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.base.errors import CorruptLogError, MachineStateError
from millpond.kernel.distinct import Distinct
from millpond.kernel.paths import canonical
from millpond.kernel.seen import Keys, SeenFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from millpond.kernel.seen import Name


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


_NO_COMMIT: Final = -2
KEY_COLUMNS: Final = ("version", "is_add", "key_path", "dv_type", "dv_path", "dv_offset")

Key = tuple[str, str | None]
"""A file of a table: its canonical path, and its deletion vector's unique id."""


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
    _seen: list[SeenFiles] = field(default_factory=list, compare=False)

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
    def seen(self) -> SeenFiles:
        """The files that actions were about."""
        if not self._seen:
            raise MachineStateError(
                "the commits have not been read to their end",
                table=self.table,
                hint="iterate the machine to the end of this phase",
            )
        return self._seen[-1]

    def finished(self, seen: SeenFiles) -> None:
        """A run has come to its end."""
        self._seen[:] = [seen]

    def tombstones(self) -> pa.Table:
        """What no older action may bring back, in every spelling: path and deletion vector."""
        return self.seen.spelled()


class _Actions(NamedTuple):
    """Actions on files: their versions, and which of them are adds."""

    keys: Keys
    versions: NDArray[np.int64]
    is_add: NDArray[np.bool_]


class _DedupRun:
    def __init__(self, owner: AddRemoveDedup) -> None:
        self._owner = owner
        self._distinct: Distinct | None = Distinct()
        """What tells that files are named once; None as soon as one may have been named again."""
        self._once: list[_Actions] = []
        """The batches before that."""
        self._seen: dict[Name, int] = {}
        """From there on: all files so far, and the number of the first action for each."""
        self._removed = np.zeros(0, np.int64)
        """Of each action with a number: the commit that removes by it, if it counts."""

    def apply(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Which rows count; only where a file is named again are names looked at."""
        actions = self._actions(batch)
        keep = actions.is_add | self._owner.keep_removes
        if self._distinct is not None:
            # What is removed has been added before, so that its name comes again.
            if actions.is_add.all() and self._distinct.add(actions.keys.texts()):
                self._once.append(actions)
                return pa.array(keep)
            self._look_closer()
        return pa.array(keep & self._counting(actions))

    def _actions(self, batch: pa.RecordBatch) -> _Actions:
        columns = {name: batch.column(name) for name in KEY_COLUMNS}
        paths = columns["key_path"]
        if paths.null_count:
            row = pc.index(paths.is_null(), True).as_py()
            raise self._no_path(columns["version"][row].as_py())
        if pc.any(pc.starts_with(paths, "file:", ignore_case=True)).as_py():
            paths = pa.array([canonical(path) for path in paths.to_pylist()], pa.string())
        vectors = None
        if columns["dv_type"].null_count < batch.num_rows:
            vectors = _unique_ids(columns["dv_type"], columns["dv_path"], columns["dv_offset"])
        is_add = columns["is_add"].to_numpy(zero_copy_only=False)
        return _Actions(Keys(paths, vectors), columns["version"].to_numpy(), is_add)

    def _look_closer(self) -> None:
        """Make names of all that was put by."""
        put_by, self._once = self._once, []
        self._distinct = None
        for actions in put_by:
            self._counting(actions)

    def _counting(self, actions: _Actions) -> NDArray[np.bool_]:
        """Which rows are the first ones for their files, or adds of a commit that removes, too."""
        start, count = len(self._removed), len(actions.versions)
        names = actions.keys.names()
        numbers = range(start, start + count)
        firsts = np.fromiter(map(self._seen.setdefault, names, numbers), np.int64, count)
        counts: NDArray[np.bool_] = firsts == np.arange(start, start + count)
        removes = np.where(counts & ~actions.is_add, actions.versions, _NO_COMMIT)
        self._removed = np.concatenate((self._removed, removes))
        # An add counts although a remove of the same commit stood before it.
        again = np.flatnonzero(~counts & actions.is_add & (actions.versions >= 0))
        again = again[self._removed[firsts[again]] == actions.versions[again]]
        for row, first in zip(again.tolist(), firsts[again].tolist(), strict=True):
            counts[row] = self._removed[first] != _NO_COMMIT
            self._removed[first] = _NO_COMMIT
        return counts

    def _no_path(self, version: int) -> CorruptLogError:
        return CorruptLogError(
            f"an action of version {version} of {self._owner.table} has no path",
            table=self._owner.table,
            hint="the log is damaged: restore it from a backup",
        )

    def finish(self) -> None:
        """Hand over what was seen."""
        columns = [actions.keys for actions in self._once]
        self._owner.finished(SeenFiles(self._seen, columns))


def unique_id(kind: str | None, path: str | None, offset: int | None) -> str | None:
    """What tells one deletion vector from another."""
    if kind is None:
        return None
    return f"{kind}{path or ''}" + ("" if offset is None else f"@{offset}")


def _unique_ids(kinds: pa.Array, paths: pa.Array, offsets: pa.Array) -> pa.Array:
    """The same of many, null where there is none."""
    at = pc.binary_join_element_wise("@", offsets.cast(pa.string()), "")
    ids = pc.binary_join_element_wise(
        kinds, paths, at, "", null_handling="replace", null_replacement=""
    )
    return pc.if_else(kinds.is_valid(), ids, pa.scalar(None, pa.string()))
