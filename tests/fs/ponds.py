"""Small ponds for tests: made out of a dictionary, changed step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.base.ids import TxnId
from millpond.fs import edit
from millpond.fs.blobs import digest_of
from millpond.fs.edit import Stored
from millpond.fs.entry import EntryType
from millpond.fs.memory import MemoryPersistence
from millpond.fs.persistence import Commit, Persistence
from millpond.fs.working import Working

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millpond.fs.entry import Row
    from millpond.fs.tree import Tree

    Step = Callable[[Working], object]
    Content = bytes | str | None


def stored(content: bytes) -> Stored:
    """Content that lives in its row."""
    return Stored(len(content), digest_of(content), content)


def fill(work: Working, content: Mapping[str, Content]) -> None:
    """Make what a dictionary says: None is a directory, bytes a file, text the target of a link."""
    for path, what in content.items():
        above = path.rpartition("/")[0]
        if above:
            edit.make_directory(work, above, parents=True)
        if what is None:
            edit.make_directory(work, path)
        elif isinstance(what, bytes):
            edit.write(work, path, EntryType.DATA, stored(what))
        else:
            edit.make_link(work, path, what)


def apply(persistence: Persistence, *steps: Step) -> Tree:
    """One transaction on the newest tree."""
    work = Working(persistence.latest())
    for step in steps:
        step(work)
    return commit(persistence, work)


def commit(persistence: Persistence, work: Working) -> Tree:
    """Commit what nobody is in the way of."""
    made = persistence.commit(work.base, rows_of(work), Commit(str(TxnId.new())))
    assert made is not None
    return made


def rows_of(work: Working) -> list[Row]:
    """The rows that a transaction is to write."""
    return [draft.row for draft in work.drafts.values()]


def pond_of(content: Mapping[str, Content]) -> MemoryPersistence:
    """A pond in memory with some content, written by one transaction."""
    persistence = MemoryPersistence()
    apply(persistence, lambda work: fill(work, content))
    return persistence


def tree_of(content: Mapping[str, Content]) -> Tree:
    """The tree of such a pond, nothing of which was looked into yet."""
    return pond_of(content).latest()
