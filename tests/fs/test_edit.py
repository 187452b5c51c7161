"""What can be done to nodes in a transaction, what is refused, and what is written for it."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.fs.ponds import apply, commit, fill, pond_of, rows_of, stored, tree_of

from millpond.base.errors import (
    DirectoryError,
    LinkLoopError,
    MillpondError,
    NoDirectoryError,
    NotEmptyError,
    PathExistsError,
    PathNotFoundError,
    PathSyntaxError,
    PathTypeError,
)
from millpond.fs import edit
from millpond.fs.edit import Stored
from millpond.fs.entry import MOVED_FROM, MOVED_TO, ROOT, EntryType
from millpond.fs.resolve import resolve, try_resolve
from millpond.fs.walk import walk
from millpond.fs.working import Working

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fs.ponds import Content

    from millpond.fs.entry import Row
    from millpond.fs.memory import MemoryPersistence
    from millpond.fs.tree import TreeLike

DATA, SERIES = EntryType.DATA, EntryType.DATA_SERIES
POND: dict[str, Content] = {
    "/dir/file": b"1",
    "/dir/sub/deep": b"2",
    "/empty": None,
    "/link": "dir",
    "/gone": "nowhere",
    "/self": "self",
}


def working(content: dict[str, Content] | None = None) -> Working:
    return Working(tree_of(POND if content is None else content))


def paths(tree: TreeLike) -> list[str]:
    return [found.path for found in walk(tree)]


def row_at(tree: TreeLike, path: str) -> Row:
    row = resolve(tree, path, follow=False).row
    assert row is not None
    return row


def dynamic(work: Working) -> object:
    return edit.write(work, "/dyn", EntryType.DYNAMIC_DIRECTORY)


# What is refused


@pytest.mark.parametrize(
    ("step", "kind", "message", "hint"),
    [
        # Directories
        (lambda w: edit.make_directory(w, "/"), PathExistsError, "a directory at /", "choose"),
        (lambda w: edit.make_directory(w, "/dir"), PathExistsError, "a directory at", "choose"),
        (lambda w: edit.make_directory(w, "/dir/file"), PathExistsError, "a data at", "choose"),
        (
            lambda w: edit.make_directory(w, "/dir/file", parents=True),
            PathExistsError, "a data at", "choose",
        ),
        (lambda w: edit.make_directory(w, "/gone"), PathExistsError, "a symlink at", "choose"),
        (
            lambda w: edit.make_directory(w, "/gone/x", parents=True),
            PathNotFoundError, "a symbolic link to nowhere", "make what it leads to",
        ),
        (
            lambda w: edit.make_directory(w, "/x/y"),
            PathNotFoundError, "there is no directory /x for y", r"pass parents \(-p\)",
        ),
        (
            lambda w: edit.make_directory(w, "/dir/file/x", parents=True),
            NoDirectoryError, "leads through /dir/file", "where it ends",
        ),
        (lambda w: edit.make_directory(w, "/self/x"), LinkLoopError, "more than 40", "one of"),
        (lambda w: edit.make_directory(w, "x"), PathSyntaxError, "does not begin", "write /x"),
        (lambda w: edit.make_directory(w, "/x@v2"), PathSyntaxError, "like the version", "another"),
        (
            lambda w: edit.make_directory(w, "/x/y@v2/z", parents=True),
            PathSyntaxError, "like the version", "another",
        ),
        (lambda w: edit.make_directory(w, "/" + "y" * 256), PathSyntaxError, "long", "another"),
        (
            lambda w: (dynamic(w), edit.make_directory(w, "/dyn/x")),
            PathTypeError, "/dyn is a dynamic:directory: nothing can be put", "another directory",
        ),
        (
            lambda w: (dynamic(w), edit.make_directory(w, "/dyn/x/y", parents=True)),
            PathTypeError, "/dyn is a dynamic:directory: nothing can be put", "another directory",
        ),
        # Links
        (lambda w: edit.make_link(w, "/dir", "x"), PathExistsError, "a directory at", "choose"),
        (lambda w: edit.make_link(w, "/x", ""), PathSyntaxError, "target of a link", "name a path"),
        (lambda w: edit.make_link(w, "/x", "a\0"), PathSyntaxError, "target of a", "name a path"),
        (lambda w: edit.make_link(w, "/x", "\ud800"), PathSyntaxError, "target", "name a path"),
        (lambda w: edit.make_link(w, "/", "x"), PathSyntaxError, "the root has no name", "in it"),
        # Writing
        (lambda w: edit.write(w, "/", DATA), DirectoryError, "/ is a directory", "NAME"),
        (lambda w: edit.write(w, "/dir", DATA), DirectoryError, "is a directory", "/dir/NAME"),
        (lambda w: edit.write(w, "/link", DATA), DirectoryError, "is a directory", "NAME"),
        (
            lambda w: edit.write(w, "/dir/file", SERIES),
            PathTypeError, "is a data and can't become a data:series", "remove it first",
        ),
        (lambda w: edit.write(w, "/gone", DATA), PathExistsError, "a symlink at", "choose"),
        (
            lambda w: edit.write(w, "/x/y", DATA),
            PathNotFoundError, "there is no directory /x for y", "pond mkdir -p /x",
        ),
        (lambda w: edit.write(w, "/dir/file/x", DATA), NoDirectoryError, "through", "it ends"),
        (lambda w: edit.write(w, "/dir/..", DATA), DirectoryError, "is a directory", "NAME"),
        # Facts
        (lambda w: edit.change(w, "/"), PathTypeError, "the root has nothing", "something in it"),
        (lambda w: edit.change(w, "/x"), PathNotFoundError, "nothing at /x", "/ has"),
        # Removing
        (lambda w: edit.remove(w, "/"), PathTypeError, "the root can't be removed", "in it"),
        (lambda w: edit.remove(w, "/dir"), NotEmptyError, "with something in it", r"-r"),
        (lambda w: edit.remove(w, "/x"), PathNotFoundError, "nothing at /x", "/ has"),
        # Moving
        (lambda w: edit.move(w, "/", "/x"), PathTypeError, "root can't be moved", "in it"),
        (lambda w: edit.move(w, "/dir/..", "/x"), PathTypeError, "root can't", "in it"),
        (lambda w: edit.move(w, "/x", "/y"), PathNotFoundError, "nothing at /x", "/ has"),
        (lambda w: edit.move(w, "/dir", "/dir"), PathSyntaxError, "into itself", "somewhere else"),
        (lambda w: edit.move(w, "/dir", "/dir/sub/x"), PathSyntaxError, "into itself", "else"),
        (lambda w: edit.move(w, "/dir", "/link"), PathSyntaxError, "into itself", "else"),
        (lambda w: edit.move(w, "/empty", "/gone"), PathExistsError, "a symlink at", "choose"),
        (lambda w: edit.move(w, "/empty", "/dir/file"), PathExistsError, "a data at", "choose"),
        (
            lambda w: (edit.make_directory(w, "/dir/empty"), edit.move(w, "/empty", "/dir")),
            PathExistsError, "a directory at /dir/empty", "choose",
        ),
        (lambda w: edit.move(w, "/empty", "/x/y"), PathNotFoundError, "no directory /x", "mkdir"),
        (lambda w: edit.move(w, "/dir/file", "/x/"), PathNotFoundError, "nothing at /x/", "/ has"),
        (lambda w: edit.move(w, "/empty", "/dir/file/x"), NoDirectoryError, "through", "ends"),
        (lambda w: edit.move(w, "/empty", "/a@v1"), PathSyntaxError, "like the version", "another"),
        (
            lambda w: (dynamic(w), edit.move(w, "/empty", "/dyn/x")),
            PathTypeError, "nothing can be put into it", "another directory",
        ),
        # Restoring
        (lambda w: edit.restore_removed(w, "/dir"), PathExistsError, "/dir is there", "/dir@v1"),
        (lambda w: edit.restore_removed(w, "/gone"), PathExistsError, "is there", "@v1"),
        (
            lambda w: edit.restore_removed(w, "/dri"),
            PathNotFoundError, "there was never anything at /dri", "did you mean /dir",
        ),
        (lambda w: edit.restore_removed(w, "/x/y"), PathNotFoundError, "never anything", "/ has"),
        (lambda w: edit.restore_removed(w, "/dir/file/x"), NoDirectoryError, "through", "ends"),
        (lambda w: edit.restore_removed(w, "/"), PathExistsError, "/ is there", "@v1"),
    ],
)  # fmt: skip
def test_what_is_refused(
    step: Callable[[Working], object], kind: type[MillpondError], message: str, hint: str
) -> None:
    work = working()
    with pytest.raises(kind, match=message) as caught:
        step(work)
    assert type(caught.value) is kind
    assert caught.value.hint
    assert re.search(hint, caught.value.hint), caught.value.hint
    left = [
        draft.path for draft in work.drafts.values() if draft.path not in ("/dyn", "/dir/empty")
    ]
    assert left == [], "something was noted for what was refused"


# Directories and links


def test_directories() -> None:
    work = working({})
    made = edit.make_directory(work, "/a")
    assert (made.path, made.real_path, made.entry_type) == ("/a", "/a", EntryType.DIRECTORY)
    edit.make_directory(work, "/a/b/")
    assert edit.make_directory(work, "/a", exist_ok=True).node_id == made.node_id
    assert edit.make_directory(work, "/a/", parents=True).node_id == made.node_id
    assert edit.make_directory(work, "/", parents=True).node_id == ROOT
    assert paths(work) == ["/a", "/a/b"]
    assert paths(work.base) == []


def test_directories_with_their_parents() -> None:
    work = working()
    made = edit.make_directory(work, "/link/x/y/z", parents=True)
    assert (made.path, made.real_path) == ("/link/x/y/z", "/dir/x/y/z")
    edit.make_directory(work, "/p/../q/r", parents=True)
    edit.make_directory(work, "/p/../empty/s", parents=True)
    edit.make_directory(work, "/new/../link/t", parents=True)
    new = set(paths(work)) - set(paths(work.base))
    assert new == {
        "/dir/x", "/dir/x/y", "/dir/x/y/z", "/p", "/q", "/q/r", "/empty/s", "/new", "/dir/t",
    }  # fmt: skip


def test_links() -> None:
    work = working({})
    made = edit.make_link(work, "/l", "no/where/../é")
    assert made.entry_type is EntryType.SYMLINK
    row = row_at(work, "/l")
    assert work.content(row) == "no/where/../é".encode()
    assert row.size == 14
    assert try_resolve(work, "/l") is None
    fill(work, {"/no/é": b"", "/no/where": None})
    assert resolve(work, "/l").real_path == "/no/é"


# Writing


def test_versions() -> None:
    pond = pond_of({"/f": b"1"})
    for number in (2, 3):
        content = stored(str(number).encode())
        apply(pond, partial(edit.write, path="/f", entry_type=DATA, stored=content))
    tree = pond.latest()
    row = row_at(tree, "/f")
    rows = tree.history(row.part_id, row.node_id)
    assert [(r.version, r.txn_seq, tree.content(r)) for r in rows] == [
        (1, 1, b"1"), (2, 2, b"2"), (3, 3, b"3"),
    ]  # fmt: skip


def test_what_one_transaction_writes_is_one_version() -> None:
    pond = pond_of({"/f": b"1"})
    work = Working(pond.latest())
    for content in (b"2", b"3"):
        assert edit.write(work, "/f", DATA, stored(content)).row == row_at(work, "/f")
        assert row_at(work, "/f").version == 2
        edit.write(work, "/new", DATA, stored(content))
        assert row_at(work, "/new").version == 1
    assert [work.content(row) for row in rows_of(work)] == [b"3", b"3"]


@pytest.mark.parametrize(
    ("between", "path"),
    [
        (lambda w: edit.move(w, "/a/f", "/b/f"), "/b/f"),
        (lambda w: edit.move(w, "/a/f", "/a/g"), "/a/g"),
        (lambda w: edit.change(w, "/a/f", factory="x"), "/a/f"),
        (lambda w: (edit.remove(w, "/a/f"), edit.restore_removed(w, "/a/f")), "/a/f"),
        (lambda w: (edit.move(w, "/a/f", "/b"), edit.move(w, "/b/f", "/a")), "/a/f"),
        (lambda w: (edit.move(w, "/a/f", "/b"), edit.move(w, "/b/f", "/c")), "/c/f"),
    ],
)
@pytest.mark.parametrize("when", ["before", "after", "both"])
def test_versions_are_counted_whatever_else_happens(
    between: Callable[[Working], object], path: str, when: str
) -> None:
    pond = pond_of({"/a/f": b"1", "/b": None, "/c": None})
    work = Working(pond.latest())
    if when in ("before", "both"):
        edit.write(work, "/a/f", DATA, stored(b"2"))
    between(work)
    if when in ("after", "both"):
        edit.write(work, path, DATA, stored(b"3"))
    expected = (2, b"2" if when == "before" else b"3")
    row = row_at(work, path)
    assert (row.version, work.content(row)) == expected
    tree = commit(pond, work)
    row = row_at(tree, path)
    assert (row.version, tree.content(row)) == expected
    rows = [r for r in tree.history(row.part_id, row.node_id) if not r.removed]
    assert [(r.version, tree.content(r)) for r in rows] == [(1, b"1"), expected]


def test_a_large_version_behind_a_small_one_has_no_content_of_it() -> None:
    pond = pond_of({"/f": b"small", "/b": None})
    work = Working(pond.latest())
    edit.write(work, "/f", DATA, Stored(1 << 30, "ab" * 32))
    assert work.content(row_at(work, "/f")) is None
    edit.move(work, "/f", "/b/f")
    edit.change(work, "/b/f", factory="x")
    assert work.content(row_at(work, "/b/f")) is None
    edit.remove(work, "/b/f")
    assert [row.content for row in rows_of(work)] == [None, None]


def test_fields_and_facts() -> None:
    pond = pond_of({"/f": b"1", "/link": "f"})
    apply(pond, lambda w: edit.write(w, "/link", DATA, stored(b"2"), time_column="t", factory="x"))
    apply(pond, lambda w: edit.change(w, "/link", factory=None, config="c"))
    tree = pond.latest()
    row = row_at(tree, "/f")
    assert (row.version, row.time_column, row.factory, row.config) == (2, "t", None, "c")
    assert (tree.content(row), row.size, row.txn_seq) == (b"2", 1, 3)


# Moving


def test_a_rename_is_one_row_and_a_move_two() -> None:
    work = working()
    edit.move(work, "/dir", "/other")
    (row,) = rows_of(work)
    assert (row.name, row.version, row.removed, row.attributes) == ("other", 1, False, {})
    assert paths(work)[:5] == ["/empty", "/gone", "/link", "/other", "/other/file"]
    work = working()
    edit.move(work, "/dir/sub", "/s")
    gone, here = rows_of(work)
    where = row_at(work, "/dir").node_id
    assert (gone.part_id, gone.removed, gone.attributes) == (where, True, {MOVED_TO: ""})
    assert (here.part_id, here.removed, here.attributes) == (ROOT, False, {MOVED_FROM: where})
    assert gone.node_id == here.node_id
    assert resolve(work, "/s/deep").real_path == "/s/deep"


def test_a_move_says_where_to() -> None:
    work = working()
    edit.move(work, "/empty", "/dir/sub")
    ids = [row_at(work, path).node_id for path in ("/dir", "/dir/sub")]
    gone = next(row for row in rows_of(work) if row.removed)
    assert gone.attributes == {MOVED_TO: "/".join(ids)}


@pytest.mark.parametrize(
    ("source", "target", "end"),
    [
        ("/dir/file", "/x", "/x"),
        ("/dir/file", "/empty", "/empty/file"),
        ("/dir/file", "/empty/", "/empty/file"),
        ("/dir/file", "/", "/file"),
        ("/dir/file", "/dir/sub/../x", "/dir/x"),
        ("/empty", "/link", "/dir/empty"),
        ("/empty", "/link/x", "/dir/x"),
        ("/link", "/l2", "/l2"),  # the link, not what it leads to
        ("/link/file", "/x", "/x"),
        ("/gone", "/dir/gone", "/dir/gone"),
        ("/dir/sub", "/empty/x", "/empty/x"),
    ],
)
def test_where_things_are_moved_to(source: str, target: str, end: str) -> None:
    work = working()
    node = resolve(work, source, follow=False).node_id
    assert edit.move(work, source, target).node_id == node
    assert resolve(work, end, follow=False).node_id == node
    assert try_resolve(work, source, follow=False) is None
    assert resolve(work, end, follow=False).real_path == end


def test_a_move_to_itself_is_nothing() -> None:
    work = working()
    edit.move(work, "/dir/file", "/dir/file")
    edit.move(work, "/dir/file", "/link/file")
    edit.move(work, "/dir/file", "/dir")
    edit.move(work, "/link", "/link/../link")
    assert rows_of(work) == []


def test_what_is_made_and_moved_was_never_elsewhere() -> None:
    work = working({"/a": None, "/b": None})
    edit.write(work, "/a/f", DATA, stored(b"1"))
    edit.make_directory(work, "/a/d")
    edit.write(work, "/a/d/g", DATA, stored(b"2"))
    edit.move(work, "/a/f", "/b")
    edit.move(work, "/a/d", "/b")
    assert paths(work) == ["/a", "/b", "/b/d", "/b/d/g", "/b/f"]
    assert all(not row.attributes and not row.removed for row in rows_of(work))
    assert len(rows_of(work)) == 3


def test_names_can_change_places() -> None:
    pond = pond_of({"/a": b"a", "/b": b"b"})
    apply(
        pond,
        lambda w: edit.move(w, "/a", "/tmp"),
        lambda w: edit.move(w, "/b", "/a"),
        lambda w: edit.move(w, "/tmp", "/b"),
    )
    tree = pond.latest()
    assert [tree.content(row_at(tree, path)) for path in ("/a", "/b")] == [b"b", b"a"]
    assert paths(tree) == ["/a", "/b"]


# Removing and restoring


def test_remove_and_restore() -> None:
    pond = pond_of(POND)
    apply(pond, lambda w: edit.remove(w, "/dir/file"), lambda w: edit.remove(w, "/empty"))
    assert "/dir/file" not in paths(pond.latest())
    apply(pond, lambda w: edit.remove(w, "/dir", recursive=True))
    assert paths(pond.latest()) == ["/gone", "/link", "/self"]
    apply(pond, lambda w: edit.restore_removed(w, "/dir"))
    assert "/dir/sub/deep" in paths(pond.latest())
    assert "/dir/file" not in paths(pond.latest())
    apply(pond, lambda w: edit.restore_removed(w, "/link/file"))
    tree = pond.latest()
    row = row_at(tree, "/dir/file")
    assert (tree.content(row), row.version, row.removed) == (b"1", 1, False)
    assert len(rows_of_commit(pond)) == 1


def rows_of_commit(pond: MemoryPersistence) -> list[Row]:
    """The rows of the last transaction."""
    tree = pond.latest()
    found = []
    for part in {ROOT, *(r.node_id for located in walk(tree) for r in located.chain)}:
        for rows in tree.partition(part).by_node.values():
            found += [row for row in rows if row.txn_seq == tree.txn_seq]
    return found


def test_links_are_removed_and_not_what_they_lead_to() -> None:
    work = working()
    for path in ("/link", "/gone", "/self"):
        edit.remove(work, path)
    assert paths(work) == ["/dir", "/dir/file", "/dir/sub", "/dir/sub/deep", "/empty"]


def test_the_last_one_that_was_removed_comes_back() -> None:
    pond = pond_of({"/f": b"1"})
    apply(pond, lambda w: edit.remove(w, "/f"))
    apply(pond, lambda w: fill(w, {"/f": b"2"}))
    apply(pond, lambda w: edit.remove(w, "/f"))
    work = Working(pond.latest())
    edit.restore_removed(work, "/f")
    assert work.content(row_at(work, "/f")) == b"2"
    edit.move(work, "/f", "/g")
    edit.restore_removed(work, "/f")
    assert work.content(row_at(work, "/f")) == b"1"


def test_restoring_in_the_same_transaction() -> None:
    work = working()
    edit.remove(work, "/dir/file")
    edit.restore_removed(work, "/dir/file")
    assert work.content(row_at(work, "/dir/file")) == b"1"
    edit.remove(work, "/dir", recursive=True)
    edit.restore_removed(work, "/dir")
    assert "/dir/sub/deep" in paths(work)


def test_what_was_moved_away_is_not_restored_where_it_was() -> None:
    pond = pond_of(POND)
    apply(pond, lambda w: edit.move(w, "/dir/file", "/empty/f"))
    work = Working(pond.latest())
    with pytest.raises(PathNotFoundError, match="never anything at /dir/file"):
        edit.restore_removed(work, "/dir/file")
    apply(pond, lambda w: edit.remove(w, "/empty/f"))
    apply(pond, lambda w: edit.restore_removed(w, "/empty/f"))
    tree = pond.latest()
    assert tree.content(row_at(tree, "/empty/f")) == b"1"


def test_what_is_moved_and_removed_at_once_is_restored_where_it_was_last() -> None:
    pond = pond_of(POND)
    apply(
        pond,
        lambda w: edit.move(w, "/dir/file", "/empty"),
        lambda w: edit.move(w, "/empty/file", "/last"),
        lambda w: edit.remove(w, "/last"),
    )
    for path in ("/dir/file", "/empty/file"):
        with pytest.raises(PathNotFoundError, match="never anything"):
            edit.restore_removed(Working(pond.latest()), path)
    apply(pond, lambda w: edit.restore_removed(w, "/last"))
    tree = pond.latest()
    row = row_at(tree, "/last")
    assert tree.content(row) == b"1"
    assert [r.txn_seq for r in tree.history(row.part_id, row.node_id) if not r.removed] == [1, 3]


def test_what_is_made_and_removed_leaves_nothing() -> None:
    work = working()
    fill(work, {"/new/f": b"1", "/new/d/g": b"2", "/l": "x"})
    edit.remove(work, "/new/f")
    edit.remove(work, "/new/d/g")
    edit.remove(work, "/new/d")
    edit.remove(work, "/new")
    edit.remove(work, "/l")
    assert (len(work), paths(work)) == (0, paths(work.base))
    with pytest.raises(PathNotFoundError, match="never anything"):
        edit.restore_removed(work, "/new")


def test_what_is_removed_with_something_in_it_can_come_back() -> None:
    pond = pond_of({"/old": b"1"})
    apply(
        pond,
        lambda w: edit.make_directory(w, "/new"),
        lambda w: edit.move(w, "/old", "/new"),
        lambda w: edit.remove(w, "/new", recursive=True),
    )
    assert paths(pond.latest()) == []
    apply(pond, lambda w: edit.restore_removed(w, "/new"))
    assert paths(pond.latest()) == ["/new", "/new/old"]


# The working tree


def test_reads_see_drafts_and_the_tree_below_stays() -> None:
    work = working()
    inside = work.children(ROOT)
    edit.write(work, "/aaa", DATA, stored(b"x"))
    edit.write(work, "/zzz", DATA, stored(b"x"))
    edit.remove(work, "/empty")
    assert list(work.children(ROOT)) == ["aaa", "dir", "gone", "link", "self", "zzz"]
    assert "empty" in inside, "what was given out does not change"
    assert work.child(ROOT, "empty") is None
    assert work.child(ROOT, "aaa") == row_at(work, "/aaa")
    assert list(work.base.children(ROOT)) == ["dir", "empty", "gone", "link", "self"]
    row = row_at(work, "/aaa")
    assert (row.txn_seq, row.timestamp) == (0, 0), "no transaction has it yet"
    assert work.latest(ROOT, row.node_id) == row
    assert work.base.latest(ROOT, row.node_id) is None
    assert work.history(ROOT, row.node_id) == (row,)
