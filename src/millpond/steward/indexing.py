"""Writing the index: a run after each commit, and all of it where a reader had to do without.

All this is best effort. What can't be written is missing, and the next reader goes the long way.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from millpond.fs.entry import EntryType
from millpond.fs.oplog.persistence import state_of
from millpond.steward.runs import (
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
    from millpond.steward.index import Index

JOIN_EVERY: Final = 16
"""After so many versions, small runs are joined."""
MOST_SILENT: Final = 8
"""So many commits that keep the rows are taken into the next run."""
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
    first = tree.version
    while first > 0 and tree.version - first < MOST_SILENT and index.commits.keep_rows(first - 1):
        first -= 1
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
        _join(list_runs(index.directory), written)


def _join(files: Sequence[RunFile], newest: RunFile) -> None:
    """Join the newest runs with those before that are not larger than all of them together.

    So each row is written again only as often as the index doubles, and runs stay few.
    """
    ending = {file.last: file for file in sorted(files, reverse=True)}  # the longest of equals
    taken, size = [newest], newest.size
    while (file := ending.get(taken[0].first - 1)) is not None and file.size <= size:
        taken.insert(0, file)
        size += file.size
    runs = [read_run(file) for file in taken]
    if len(runs) < 2 or any(b.base_id != a.txn_id for a, b in pairwise(runs)):
        return
    made = write_run(newest.path.parent, joined(runs))
    _delete(file for file in taken if file.path != made.path)


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
    older = [each for each in list_runs(index.directory) if each.first <= tree.version]
    _delete(each for each in older if each.path != made.path)
    return True


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
