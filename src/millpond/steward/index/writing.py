"""Writing the index: a run after each commit, and all of it where a reader had to do without.

All this is best effort. What can't be written is missing, and the next reader goes the long way.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from millpond.fs.entry import EntryType
from millpond.fs.oplog.persistence import state_of
from millpond.steward.index.runs import (
    BadRunError,
    RunFile,
    joined,
    list_runs,
    make_run,
    read_run,
    write_run,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millpond.fs.entry import Row
    from millpond.fs.tree import Tree
    from millpond.steward.index.runs import Run
    from millpond.steward.index.tree import Index

JOIN_EVERY: Final = 16
"""After so many versions, small runs are joined."""
MOST_SILENT: Final = 8
"""So many commits that keep the rows may be between two runs that are joined."""
_log = logging.getLogger("millpond.steward")


def note(index: Index, tree: Tree, rows: Mapping[str, Sequence[Row]]) -> None:
    """Write what one transaction did, by directory."""
    try:
        _note(index, tree, rows)
    except (BadRunError, OSError, ValueError) as error:
        _log.debug("the index could not be written: %s", error)


def _note(index: Index, tree: Tree, rows: Mapping[str, Sequence[Row]]) -> None:
    txn_id = index.commits.txn_id(tree.version)
    if txn_id is None:
        return
    # The first commit made the table, and no rows.
    first = 0 if tree.version == 1 and index.commits.keep_rows(0) else tree.version
    base_id = index.commits.txn_id(first - 1)
    if first > 0 and base_id is None:
        return
    run = make_run(
        first,
        tree.version,
        rows,
        txn_seq=tree.txn_seq,
        base_id=base_id,
        txn_id=txn_id,
    )
    written = write_run(index.directory, run)
    if tree.version % JOIN_EVERY == 0:
        _join(index, written)


def _join(index: Index, newest: RunFile) -> None:
    """Join the newest runs with those before that are not much larger than all of them together.

    So a row is written again only a few times while the index doubles, and runs stay few.
    """
    files = list_runs(index.directory)
    ending = {file.last: file for file in sorted(files, reverse=True)}  # the longest of equals
    taken, size = [newest], newest.size
    while (file := _before(index, ending, taken[0])) is not None and file.size <= 2 * size:
        taken.insert(0, file)
        size += file.size
    if len(taken) < 2:
        return
    runs = [read_run(file) for file in taken]
    if not all(_is_confirmed(index, run) for run in runs):
        return
    made = write_run(index.directory, joined(runs))
    _delete(file for file in taken if file.path != made.path)


def _before(index: Index, ending: Mapping[int, RunFile], file: RunFile) -> RunFile | None:
    """The run before another one; commits between them that keep the rows need none."""
    last = file.first - 1
    for _ in range(MOST_SILENT):
        if last in ending or last < 0 or not index.commits.keep_rows(last):
            break
        last -= 1
    return ending.get(last)


def _is_confirmed(index: Index, run: Run) -> bool:
    commits = index.commits
    return (commits.txn_id(run.first - 1), commits.txn_id(run.last)) == (run.base_id, run.txn_id)


def rebuild(index: Index, tree: Tree) -> bool:
    """Write the whole index out of a tree of the OpLog; whether that worked."""
    try:
        return _rebuild(index, tree)
    except (OSError, ValueError) as error:
        _log.debug("the index could not be written: %s", error)
        return False


def _rebuild(index: Index, tree: Tree) -> bool:
    txn_id = index.commits.txn_id(tree.version)
    if txn_id is None or not _is_writable(index):
        return False
    # All directories, not only those that can be reached: what was removed may be restored.
    parts = {part: list(_rows(tree, part)) for part in state_of(tree).files}
    run = make_run(0, tree.version, parts, txn_seq=tree.txn_seq, base_id=None, txn_id=txn_id)
    made = write_run(index.directory, run)
    others = [each for each in list_runs(index.directory) if each.path != made.path]
    _delete(each for each in others if each.first <= tree.version or not _is_good(index, each))
    return True


def _is_good(index: Index, file: RunFile) -> bool:
    """Whether a run is of what came later, and not of a log that was put back."""
    try:
        return _is_confirmed(index, read_run(file))
    except (BadRunError, FileNotFoundError):
        return False


def _rows(tree: Tree, part_id: str) -> Iterable[Row]:
    for row in tree.children(part_id).values():
        is_link = row.entry_type is EntryType.SYMLINK
        yield replace(row, content=tree.content(row)) if is_link else row


def _is_writable(index: Index) -> bool:
    pond = index.directory.parents[1]
    return os.access(index.directory if index.directory.exists() else pond, os.W_OK)


def _delete(files: Iterable[RunFile]) -> None:
    for file in files:
        file.path.unlink(missing_ok=True)
