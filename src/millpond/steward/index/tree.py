"""The index of a local pond, under `cache/index`: a tree that can be listed without Arrow.

It is derived and disposable. Runs (`runs.py`) that follow one another from version 0 to the newest
one are the tree. What the log of the OpLog does not confirm is not believed: the ids of commits
have to fit, one by one, and no commit may be there that the index does not know.
`writing.py` writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from millpond.base.errors import CorruptLogError
from millpond.kernel.commits import Commit, parse_commit
from millpond.steward.index.runs import BadRunError, Run, RunFile, list_runs, read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millpond.fs.entry import Row
    from millpond.fs.tree import Tree

DIRECTORY: Final = "cache/index"
ATTEMPTS: Final = 3
"""Others may join runs while they are read."""


@dataclass(eq=False)
class IndexTree:
    """The newest tree, out of the index; what is not in there, the OpLog is asked for."""

    runs: Sequence[Run]
    version: int
    """Of the OpLog."""
    txn_seq: int
    slow: Callable[[], Tree]
    """Gives the tree out of the OpLog."""
    _live: dict[str, dict[str, Row]] = field(default_factory=dict, repr=False)

    def children(self, part_id: str) -> Mapping[str, Row]:
        """What is in a directory, by name, sorted."""
        found = self._live.get(part_id)
        if found is None:
            last = {row.node_id: row for run in self.runs for row in run.rows(part_id)}
            rows = sorted(last.values(), key=lambda row: row.name)
            found = self._live[part_id] = {row.name: row for row in rows if not row.removed}
        return found

    def child(self, part_id: str, name: str) -> Row | None:
        """What has a name in a directory."""
        return self.children(part_id).get(name)

    def latest(self, part_id: str, node_id: str) -> Row | None:
        """The last that is known of a node in a directory, also if it was removed."""
        return self.slow().latest(part_id, node_id)

    def history(self, part_id: str, node_id: str) -> tuple[Row, ...]:
        """All rows of a node, which the OpLog alone has."""
        return self.slow().history(part_id, node_id)

    def content(self, row: Row) -> bytes | None:
        """What was written inline with this row; targets of links are in the index."""
        return row.content if row.content is not None else self.slow().content(row)


class Index:
    """The index of one pond."""

    def __init__(self, location: str) -> None:
        self.directory = Path(location) / DIRECTORY
        self.commits = Commits(Path(location) / "data" / "_delta_log")

    @classmethod
    def at(cls, location: str) -> Index | None:
        """The index of a pond, which only local ponds have."""
        return None if "://" in location else cls(location)

    def open(self, slow: Callable[[], Tree]) -> IndexTree | None:
        """The newest tree; None if the index does not reach there."""
        for _ in range(ATTEMPTS):
            try:
                return self._open(slow)
            except FileNotFoundError:
                continue
            except (BadRunError, CorruptLogError, OSError, ValueError) as error:
                import logging

                log = logging.getLogger("millpond.steward")
                log.debug("the index under %s can't be used: %s", self.directory, error)
                break
        return None

    def _open(self, slow: Callable[[], Tree]) -> IndexTree | None:
        longest = {run.first: run for run in list_runs(self.directory)}  # the last one of equals
        chain: list[Run] = []
        version, seq = -1, 0
        txn_id: str | None = None
        while True:
            run = _following(longest, version, txn_id)
            if run is not None:
                chain.append(run)
                version, txn_id, seq = run.last, run.txn_id, run.txn_seq
                continue
            if not self.commits.has(version + 1):
                break
            if not self.commits.keep_rows(version + 1):
                return None
            version, txn_id = version + 1, self.commits.txn_id(version + 1)
        if txn_id is None or self.commits.txn_id(version) != txn_id:
            return None
        return IndexTree(chain, version, seq, slow)


class Commits:
    """The log of the OpLog, read without the kernel: just enough to confirm an index."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def _path(self, version: int) -> Path:
        return self._directory / f"{version:020d}.json"

    def has(self, version: int) -> bool:
        """Whether a version is there."""
        return self._path(version).exists()

    def _commit(self, version: int) -> Commit:
        path = self._path(version)
        return parse_commit(path.read_bytes(), version, str(self._directory), str(path))

    def txn_id(self, version: int) -> str | None:
        """The id that a commit gave itself; None if it has none, or is not there."""
        found = self._commit(version).info.get("txnId") if self.has(version) else None
        return found if isinstance(found, str) else None

    def keep_rows(self, version: int) -> bool:
        """Whether the rows are the same before and after a commit: the table made, compacted."""
        actions = self._commit(version).actions
        return not any(
            action.get("dataChange", True)
            for kind in ("add", "remove")
            for action in actions.get(kind, ())
        )


def _following(longest: Mapping[int, RunFile], version: int, txn_id: str | None) -> Run | None:
    """The run behind a version, if its commits are those that followed there."""
    file = longest.get(version + 1)
    if file is None:
        return None
    run = read_run(file)
    return run if run.base_id == txn_id else None
