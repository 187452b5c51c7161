"""`OpLog`: a persistence whose rows are in a Delta table, a directory's rows in its partition."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from millpond.base.clock import Clock, SystemClock
from millpond.base.errors import PondNotFoundError, TableNotFoundError
from millpond.fs.entry import to_micros
from millpond.fs.oplog.log import LogState, NewFile, RowLog
from millpond.fs.oplog.rows import PARTITION, SCHEMA, light_columns, read_rows, write_parquet
from millpond.fs.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow.parquet as pq

    from millpond.base.settings import Settings
    from millpond.fs.entry import Row
    from millpond.fs.persistence import Commit


@dataclass
class OpLogRows:
    """The rows of one version; files of a directory are opened when it is looked into."""

    oplog: OpLog
    state: LogState
    most_seq: int | None = None
    """Rows of later transactions are left out."""
    most_micros: int | None = None
    places: dict[tuple[str, str, int], tuple[str, int]] = field(default_factory=dict, repr=False)

    def rows(self, part_id: str) -> Iterable[Row]:
        """Everything that happened in a directory."""
        return self.rows_in(part_id, self.state.files.get(part_id, ()))

    def rows_in(self, part_id: str, paths: Iterable[str]) -> list[Row]:
        """The rows of some files of a directory."""
        found: list[Row] = []
        for path in paths:
            table = self.oplog.open_file(path).read(light_columns(), use_threads=False)
            rows = read_rows(table, part_id)
            self.remember(path, rows)
            found += rows
        return [row for row in found if self._counts(row)]

    def remember(self, path: str, rows: Iterable[Row]) -> None:
        """Where the contents of rows are."""
        for number, row in enumerate(rows):
            self.places[row.part_id, row.node_id, row.txn_seq] = (path, number)

    def _counts(self, row: Row) -> bool:
        if self.most_seq is not None and row.txn_seq > self.most_seq:
            return False
        return self.most_micros is None or row.timestamp <= self.most_micros

    def content(self, row: Row) -> bytes | None:
        """What was written inline with this row."""
        key = (row.part_id, row.node_id, row.txn_seq)
        place = self.places.get(key)
        if place is None or place[0] not in self.state.files.get(row.part_id, ()):
            list(self.rows(row.part_id))
            place = self.places[key]
        path, number = place
        table = self.oplog.open_file(path).read(["content"], use_threads=False)
        column = table.column("content")
        found: bytes | None = column[number].as_py()
        return found


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

    @classmethod
    def create(cls, location: str, info: dict[str, Any], **how: Any) -> OpLog:
        """Make the OpLog of a new pond."""
        made = cls(location, **how)
        made.log.create(
            SCHEMA,
            {"txn_seq": 0, "timestamp": to_micros(made._clock.now()), **info},
            configuration={"delta.checkpointInterval": "1000000"},
            name="oplog",
        )
        return made

    def open_file(self, path: str) -> pq.ParquetFile:
        """A file of rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.files_read += 1
        return pq.ParquetFile(pa.BufferReader(self.log.store.get(path)))

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
        rows = OpLogRows(self, newer, places=source.places)
        made = Tree(rows, newer.version, int(newer.last.get("txn_seq", 0)))
        for part, partition in tree.known().items():
            before, after = older.files.get(part, ()), newer.files.get(part, ())
            if after[: len(before)] != before:
                continue  # it was compacted
            new = after[len(before) :]
            mine = None if written is None else written.get(part)
            if mine is not None and len(new) == 1:
                rows.remember(new[0], mine)
                made.keep(part, partition.extended(replace(row, content=None) for row in mine))
            elif new:
                made.keep(part, partition.extended(rows.rows_in(part, new)))
            else:
                made.keep(part, partition)
        return made

    def as_of(self, *, txn_seq: int | None = None, micros: int | None = None) -> Tree:
        """The pond as it was: its rows tell, so no old version of the table is needed."""
        tree = self.latest()
        source = OpLogRows(self, state_of(tree), most_seq=txn_seq, most_micros=micros)
        seq = tree.txn_seq if txn_seq is None else min(txn_seq, tree.txn_seq)
        return Tree(source, tree.version, seq)

    def commit(self, base: Tree, rows: Sequence[Row], commit: Commit) -> Tree | None:
        """Write one transaction behind a tree; None if another one came first."""
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
        info = {"txn_seq": seq, "timestamp": micros, "txn_id": commit.txn_id, **commit.info}
        newer = self.log.commit(state, files, info, txn_id=commit.txn_id)
        return None if newer is None else self._follow(base, newer, parts)


def state_of(tree: Tree) -> LogState:
    """The state of the log that a tree of an OpLog is made of."""
    assert isinstance(tree.source, OpLogRows)
    return tree.source.state
