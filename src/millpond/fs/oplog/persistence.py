"""`OpLog`: a persistence whose rows are in a Delta table, a directory's rows in its partition."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from millpond.base.clock import Clock, SystemClock
from millpond.base.errors import PondNotFoundError, TableNotFoundError
from millpond.fs.entry import to_micros
from millpond.fs.oplog.log import INFO, LogState, NewFile, RowLog
from millpond.fs.oplog.rowfile import RowFile
from millpond.fs.oplog.rows import PARTITION, SCHEMA, write_parquet
from millpond.fs.persistence import seq_of
from millpond.fs.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from millpond.base.settings import Settings
    from millpond.fs.entry import Row
    from millpond.fs.persistence import Commit


@dataclass
class OpLogRows:
    """The rows of one version; files of a directory are opened when it is looked into."""

    oplog: OpLog
    state: LogState
    most_seq: int | None = None
    """Rows of later transactions are left out: it is the pond as it was."""
    files: dict[str, list[Row]] = field(default_factory=dict, repr=False)
    """Rows by the file that they are in. Files never change, so trees share what was read."""
    places: dict[tuple[str, str, int], tuple[str, int]] = field(default_factory=dict, repr=False)
    """Where contents are, as far as some were asked for."""

    def rows(self, part_id: str) -> Iterable[Row]:
        """Everything that happened in a directory."""
        return self.rows_in(part_id, self.state.files.get(part_id, ()))

    def rows_in(self, part_id: str, paths: Iterable[str]) -> list[Row]:
        """The rows of some files of a directory."""
        found = [row for path in paths for row in self._read(path, part_id)]
        most = self.most_seq
        return found if most is None else [row for row in found if row.txn_seq <= most]

    def _read(self, path: str, part_id: str) -> list[Row]:
        rows = self.files.get(path)
        if rows is None:
            rows = self.files[path] = self.oplog.open_file(path).rows(part_id)
        return rows

    def content(self, row: Row) -> bytes | None:
        """What was written inline with this row."""
        key = (row.part_id, row.node_id, row.txn_seq)
        paths = self.state.files.get(row.part_id, ())
        place = self.places.get(key)
        if place is None or place[0] not in paths:
            for path in paths:
                for number, known in enumerate(self._read(path, row.part_id)):
                    self.places[known.part_id, known.node_id, known.txn_seq] = (path, number)
            place = self.places[key]
        return self.oplog.content(*place)


class OpLog:
    """The rows of a pond under `<pond>/data`."""

    def __init__(
        self, location: str, *, clock: Clock | None = None, settings: Settings | None = None
    ) -> None:
        self.location = location
        self.log = RowLog(f"{location}/data", PARTITION, settings=settings)
        self._clock = clock or SystemClock()
        self.files_read = 0
        """How many files of rows were opened."""
        self.on_commit: Callable[[Tree, Mapping[str, Sequence[Row]]], None] | None = None
        """Told of each transaction that is committed here, with its rows by directory."""
        self._recent: RowFile | None = None

    @classmethod
    def create(cls, location: str, info: dict[str, Any], **how: Any) -> OpLog:
        """Make the OpLog of a new pond."""
        made = cls(location, **how)
        # Commits leave the log some day; who the pond is has to stay.
        identity = {f"{INFO}.{key}": value for key, value in info.get("pond", {}).items()}
        made.log.create(
            SCHEMA,
            {"txn_seq": 0, "timestamp": to_micros(made._clock.now()), **info},
            configuration={"delta.checkpointInterval": "1000000", **identity},
            name="oplog",
        )
        return made

    def identity(self) -> dict[str, str]:
        """Who the pond is, as its first commit said."""
        prefix = f"{INFO}."
        found = self.log.table().metadata.configuration
        return {k.removeprefix(prefix): v for k, v in found.items() if k.startswith(prefix)}

    def open_file(self, path: str) -> RowFile:
        """A file of rows."""
        self.files_read += 1
        return RowFile(self.log.store, path)

    def content(self, path: str, number: int) -> bytes | None:
        """What was written inline with a row of a file."""
        file = self._recent
        if file is None or file.path != path:
            file = self._recent = self.open_file(path)
        return file.content(number)

    def latest(self) -> Tree:
        """The pond as it is now."""
        try:
            state = self.log.open()
        except TableNotFoundError as error:
            raise PondNotFoundError(
                f"there is no pond at {self.location}",
                location=self.location,
                hint=f"make one: pond init {self.location}",
            ) from error
        return self._tree(state)

    def _tree(self, state: LogState) -> Tree:
        return Tree(OpLogRows(self, state), state.version, int(state.last.get("txn_seq", 0)))

    def refresh(self, tree: Tree) -> Tree:
        """The pond as it is now; directories that did not change are not read again."""
        if _is_past(tree):
            return self.latest()
        older = state_of(tree)
        newer = self.log.refresh(older)
        if newer is older:
            return tree
        return self._follow(tree, newer)

    def _follow(
        self, tree: Tree, newer: LogState, written: Mapping[str, Sequence[Row]] | None = None
    ) -> Tree:
        """A newer tree that takes over directories, and reads only files that are new in them.

        `written` has the rows of the transaction that made it, which need not be read at all.
        """
        older, source = state_of(tree), tree.source
        assert isinstance(source, OpLogRows)
        rows = OpLogRows(self, newer, files=source.files, places=source.places)
        made = Tree(rows, newer.version, int(newer.last.get("txn_seq", 0)))
        for part, partition in tree.known().items():
            before, after = older.files.get(part, ()), newer.files.get(part, ())
            if after[: len(before)] != before:  # it was compacted
                for path in before:
                    rows.files.pop(path, None)
                continue
            new = after[len(before) :]
            if written is not None and part in written and len(new) == 1:
                rows.files[new[0]] = [replace(row, content=None) for row in written[part]]
            if new:
                made.keep(part, partition.extended(rows.rows_in(part, new)))
            else:
                made.keep(part, partition)
        return made

    def is_overtaken(self, tree: Tree) -> bool:
        """Whether something has come behind a tree, at a glance."""
        return self.log.has(tree.version + 1)

    def as_of(self, *, txn_seq: int | None = None, micros: int | None = None) -> Tree:
        """The pond as it was: its rows tell, so no old version of the table is needed."""
        tree = self.latest()
        seq = seq_of(txn_seq, last=tree.txn_seq)
        if micros is not None:
            seq = min(seq, self._seq_at(tree, micros))
        if seq == tree.txn_seq:
            return tree
        return Tree(OpLogRows(self, state_of(tree), most_seq=seq), tree.version, seq)

    def _seq_at(self, tree: Tree, micros: int) -> int:
        """The last transaction at a time: commits say when they were made, and are in order."""
        state = state_of(tree)
        if int(state.last.get("timestamp", 0)) <= micros:
            return tree.txn_seq
        found = bisect_right(range(state.version + 1), micros, key=self._time_of) - 1
        if found < 0:
            return 0  # before there was a pond
        said = self.log.said(found)
        if said:
            return int(said["txn_seq"])
        # Commits of that time have left the log, or say nothing, but rows stay.
        rows = (
            row
            for part in state.files
            for rows in tree.partition(part).by_node.values()
            for row in rows
        )
        return max((row.txn_seq for row in rows if row.timestamp <= micros), default=0)

    def _time_of(self, version: int) -> int:
        said = self.log.said(version)
        return int(said["timestamp"]) if said else 0

    def commit(self, base: Tree, rows: Sequence[Row], commit: Commit) -> Tree | None:
        """Write one transaction behind a tree; None if another one came first."""
        if _is_past(base):
            return None
        state = state_of(base)
        last = int(state.last.get("timestamp", 0))
        micros = max(to_micros(self._clock.now()), last + 1)
        seq = base.txn_seq + 1
        parts: dict[str, list[Row]] = {}
        for row in rows:
            made = replace(row, txn_seq=seq, timestamp=micros)
            parts.setdefault(row.part_id, []).append(made)
        files = [
            NewFile({PARTITION: part}, write_parquet(rows), len(rows))
            for part, rows in parts.items()
        ]
        info = {**commit.info, "txn_seq": seq, "timestamp": micros, "txn_id": commit.txn_id}
        newer = self.log.commit(state, files, info, txn_id=commit.txn_id)
        if newer is None:
            return None
        tree = self._follow(base, newer, parts)
        if self.on_commit is not None:
            self.on_commit(tree, parts)
        return tree


def _is_past(tree: Tree) -> bool:
    return isinstance(tree.source, OpLogRows) and tree.source.most_seq is not None


def state_of(tree: Tree) -> LogState:
    """The state of the log that a tree of an OpLog is made of."""
    assert isinstance(tree.source, OpLogRows)
    return tree.source.state
