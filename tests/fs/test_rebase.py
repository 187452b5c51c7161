"""Two writers: who goes on behind the other, with what result, and who is told to look again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.fs.ponds import apply, commit, fill, pond_of, rows_of, stored

from millpond.base.errors import WriteConflictError
from millpond.fs import edit
from millpond.fs.entry import ROOT, EntryType
from millpond.fs.rebase import AGAIN, rebase
from millpond.fs.resolve import resolve
from millpond.fs.walk import walk
from millpond.fs.working import Working

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fs.ponds import Content

    from millpond.fs.memory import MemoryPersistence
    from millpond.fs.tree import Tree

    Step = Callable[[Working], object]

DATA, SERIES = EntryType.DATA, EntryType.DATA_SERIES
POND: dict[str, Content] = {
    "/a/f": b"1",
    "/a/sub/g": b"2",
    "/b/h": b"3",
    "/c": None,
    "/l": "a",
}


def pond() -> MemoryPersistence:
    made = pond_of(POND)
    apply(
        made,
        lambda w: edit.write(w, "/s", SERIES, stored(b"1"), min_override=1),
        lambda w: fill(w, {"/old": b"old", "/a/older/x": b""}),
    )
    apply(made, remove("/old"), remove("/a/older"))
    return made


def write(path: str, content: bytes = b"new", kind: EntryType = DATA) -> Step:
    return lambda work: edit.write(work, path, kind, stored(content))


def append(content: bytes, path: str = "/s") -> Step:
    return write(path, content, SERIES)


def move(source: str, target: str) -> Step:
    return lambda work: edit.move(work, source, target)


def remove(path: str) -> Step:
    return lambda work: edit.remove(work, path, recursive=True)


def restore(path: str) -> Step:
    return lambda work: edit.restore_removed(work, path)


def mkdir(path: str) -> Step:
    return lambda work: edit.make_directory(work, path)


def make(path: str) -> Step:
    return lambda work: edit.make_directory(work, path, parents=True)


def link(path: str) -> Step:
    return lambda work: edit.make_link(work, path, "x")


def change(path: str, **fields: object) -> Step:
    return lambda work: edit.change(work, path, **fields)


def mark(path: str, **attributes: object) -> Step:
    def step(work: Working) -> object:
        row = resolve(work, path).row
        assert row is not None
        text = row.with_attributes(**attributes).extended_attributes
        return edit.change(work, path, extended_attributes=text)

    return step


def all_of(*steps: Step) -> Step:
    return lambda work: [step(work) for step in steps]


def overtaken(mine: Step, *theirs: Step) -> tuple[MemoryPersistence, Working]:
    """A pond in which others came first, each with a transaction, and what was to be done."""
    persistence = pond()
    work = Working(persistence.latest())
    mine(work)
    for step in theirs:
        apply(persistence, step)
    return persistence, work


def seen(tree: Tree) -> dict[str, bytes | str | None]:
    found: dict[str, bytes | str | None] = {}
    for located in walk(tree):
        row = located.row
        assert row is not None
        rows = tree.history(row.part_id, row.node_id)
        versions = {r.version: tree.content(r) or b"" for r in rows if not r.removed}
        is_series = row.entry_type is SERIES
        found[located.path] = b"".join(versions.values()) if is_series else tree.content(row)
    return found


BASE = {
    "/a": None, "/a/f": b"1", "/a/sub": None, "/a/sub/g": b"2", "/b": None, "/b/h": b"3",
    "/c": None, "/l": b"a", "/s": b"1",
}  # fmt: skip


# Both win


@pytest.mark.parametrize(
    ("mine", "theirs", "gone", "new"),
    [
        pytest.param(write("/b/h"), write("/a/f", b"x"), [], {"/a/f": b"x", "/b/h": b"new"},
                     id="other nodes"),
        pytest.param(write("/a/y"), write("/a/x"), [], {"/a/x": b"new", "/a/y": b"new"},
                     id="new nodes in one directory"),
        pytest.param(remove("/a/f"), write("/a/x"), ["/a/f"], {"/a/x": b"new"},
                     id="another one in the directory is removed"),
        pytest.param(append(b"2"), append(b"3"), [], {"/s": b"132"}, id="appends to one series"),
        pytest.param(all_of(append(b"2"), append(b"3")), append(b"4"), [], {"/s": b"143"},
                     id="what is appended twice is one version"),
        pytest.param(write("/a/x"), move("/a", "/z"), ["/a", "/a/f", "/a/sub", "/a/sub/g"],
                     {"/z": None, "/z/f": b"1", "/z/sub": None, "/z/sub/g": b"2", "/z/x": b"new"},
                     id="in a directory that was renamed"),
        pytest.param(write("/a/sub/x"), move("/a/sub", "/c"), ["/a/sub", "/a/sub/g"],
                     {"/c/sub": None, "/c/sub/g": b"2", "/c/sub/x": b"new"},
                     id="in a directory that was moved"),
        pytest.param(move("/a/sub", "/c"), write("/a/sub/x"), ["/a/sub", "/a/sub/g"],
                     {"/c/sub": None, "/c/sub/g": b"2", "/c/sub/x": b"new"},
                     id="a directory is moved in which others write"),
        pytest.param(move("/a", "/z"), remove("/a/f"), ["/a", "/a/f", "/a/sub", "/a/sub/g"],
                     {"/z": None, "/z/sub": None, "/z/sub/g": b"2"},
                     id="a directory is renamed in which others remove"),
        pytest.param(move("/a/sub", "/c"), move("/b", "/c"), ["/a/sub", "/a/sub/g", "/b", "/b/h"],
                     {"/c/b": None, "/c/b/h": b"3", "/c/sub": None, "/c/sub/g": b"2"},
                     id="two moves into one directory"),
        pytest.param(move("/a/f", "/b"), move("/b/h", "/a"), ["/a/f", "/b/h"],
                     {"/a/h": b"3", "/b/f": b"1"}, id="files change places"),
        pytest.param(move("/b", "/c/b"), move("/c", "/a"), ["/b", "/b/h", "/c"],
                     {"/a/c": None, "/a/c/b": None, "/a/c/b/h": b"3"},
                     id="into a directory that was moved"),
        pytest.param(remove("/a"), write("/b/x"), ["/a", "/a/f", "/a/sub", "/a/sub/g"],
                     {"/b/x": b"new"}, id="a tree is removed, others write elsewhere"),
        pytest.param(remove("/c"), move("/b", "/d"), ["/b", "/b/h", "/c"],
                     {"/d": None, "/d/h": b"3"}, id="another directory is moved"),
        pytest.param(restore("/old"), write("/x"), [], {"/old": b"old", "/x": b"new"},
                     id="something is restored"),
        pytest.param(all_of(remove("/a/f"), write("/a/f", b"again")), write("/a/x"), [],
                     {"/a/f": b"again", "/a/x": b"new"}, id="a name is given anew"),
        pytest.param(all_of(mkdir("/n"), write("/n/x"), move("/n", "/a/n")), write("/a/x"), [],
                     {"/a/n": None, "/a/n/x": b"new", "/a/x": b"new"},
                     id="a directory is made, filled and moved"),
        pytest.param(all_of(write("/b/x"), remove("/b")), write("/a/x"), ["/b", "/b/h"],
                     {"/a/x": b"new"}, id="written and removed with its directory"),
        pytest.param(all_of(mkdir("/n"), move("/a/f", "/n"), remove("/n")), write("/b/x"),
                     ["/a/f"], {"/b/x": b"new"}, id="moved into what is made and removed"),
        pytest.param(all_of(move("/a/f", "/c"), remove("/a")), write("/b/x"),
                     ["/a", "/a/f", "/a/sub", "/a/sub/g"], {"/b/x": b"new", "/c/f": b"1"},
                     id="one is saved, the rest removed"),
        pytest.param(make("/n"), make("/n"), [], {"/n": None}, id="one directory, with -p"),
        pytest.param(all_of(make("/n/m"), write("/n/m/x")), all_of(make("/n/m"), write("/n/m/y")),
                     [], {"/n": None, "/n/m": None, "/n/m/x": b"new", "/n/m/y": b"new"},
                     id="files in one new directory"),
        pytest.param(all_of(make("/n"), move("/a/f", "/n"), move("/n/f", "/c")),
                     all_of(make("/n"), write("/n/y")), ["/a/f"],
                     {"/n": None, "/n/y": b"new", "/c/f": b"1"},
                     id="moved through a directory that both make"),
        pytest.param(all_of(make("/n"), move("/b", "/n")), all_of(make("/n"), append(b"3", "/n/t")),
                     ["/b", "/b/h"], {"/n": None, "/n/b": None, "/n/b/h": b"3", "/n/t": b"3"},
                     id="moved into a directory that both make"),
        pytest.param(append(b"2", "/t"), append(b"3", "/t"), [], {"/t": b"32"},
                     id="first appends to one series"),
        pytest.param(all_of(make("/n"), append(b"2", "/n/t")),
                     all_of(make("/n"), append(b"3", "/n/t")), [], {"/n": None, "/n/t": b"32"},
                     id="first appends in one new directory"),
        pytest.param(write("/c/x"), all_of(move("/c", "/a/c"), move("/a/c", "/b/c")), ["/c"],
                     {"/b/c": None, "/b/c/x": b"new"}, id="moved twice in one transaction"),
    ],
)  # fmt: skip
def test_both_win(mine: Step, theirs: Step, gone: list[str], new: dict[str, bytes | None]) -> None:
    persistence, work = overtaken(mine, theirs)
    expected: dict[str, bytes | None] = {p: c for p, c in BASE.items() if p not in gone} | new
    tree = commit(persistence, rebase(work, persistence.latest()))
    assert seen(tree) == expected
    # In the other order the outcome is the same, but for the order of appends.
    persistence, work = overtaken(theirs, mine)
    again = seen(commit(persistence, rebase(work, persistence.latest())))
    assert {p: sorted(c or b"") for p, c in again.items()} == {
        p: sorted(c or b"") for p, c in expected.items()
    }


def test_many_transactions_between() -> None:
    steps = [append(b"2"), append(b"3"), write("/b/x"), move("/a", "/c"), append(b"4")]
    persistence, work = overtaken(all_of(append(b"!"), write("/a/sub/x")), *steps)
    tree = commit(persistence, rebase(work, persistence.latest()))
    found = seen(tree)
    assert (found["/s"], found["/c/a/sub/x"]) == (b"1234!", b"new")
    row = resolve(tree, "/s").row
    assert row is not None
    assert row.version == 5


def test_rebased_again_and_again() -> None:
    persistence, work = overtaken(all_of(append(b"!"), write("/a/x")), append(b"2"))
    for step in (append(b"3"), move("/a", "/b"), move("/b", "/d"), append(b"4")):
        work = rebase(work, persistence.latest())
        apply(persistence, step)
    found = seen(commit(persistence, rebase(work, persistence.latest())))
    assert (found["/s"], found["/d/a/x"]) == (b"1234!", b"new")


def test_rebased_again_after_it_has_joined_a_directory() -> None:
    mine = all_of(make("/n/m"), write("/n/m/x"), append(b"!", "/n/t"))
    persistence, work = overtaken(mine, make("/n"))
    for step in (make("/n/m"), append(b"2", "/n/t"), move("/n", "/c"), append(b"3", "/c/n/t")):
        work = rebase(work, persistence.latest())
        apply(persistence, step)
    work = rebase(work, persistence.latest())
    found = seen(commit(persistence, work))
    assert (found["/c/n/m/x"], found["/c/n/t"]) == (b"new", b"23!")
    persistence, work = overtaken(mine, make("/n"))
    work = rebase(work, persistence.latest())
    apply(persistence, remove("/n"))
    with pytest.raises(WriteConflictError, match="has removed n, where"):
        rebase(work, persistence.latest())


def test_nothing_is_left_where_others_have_made_all_of_it() -> None:
    persistence, work = overtaken(make("/n/m"), make("/n/m"))
    again = rebase(work, persistence.latest())
    assert not again.drafts
    assert set(again.joined) == {row.node_id for row in rows_of(work)}


def test_nothing_came_between() -> None:
    persistence, work = overtaken(all_of(append(b"!"), remove("/a")))
    again = rebase(work, persistence.latest())
    assert rows_of(again) == rows_of(work)
    assert again.drafts == work.drafts


def test_appends_go_behind_a_change_and_a_change_not_behind_appends() -> None:
    for theirs, path in ((change("/s", max_override=9), "/s"), (move("/s", "/t"), "/t")):
        persistence, work = overtaken(append(b"2"), theirs)
        found = seen(commit(persistence, rebase(work, persistence.latest())))
        assert found[path] == b"12"
        persistence, work = overtaken(theirs, append(b"2"))
        with pytest.raises(WriteConflictError, match="has written"):
            rebase(work, persistence.latest())


def test_appends_keep_what_others_changed() -> None:
    """Each side's facts hold, whoever comes first."""
    theirs = all_of(change("/s", max_override=9, config="c"), mark("/s", owner="me"))
    persistence, work = overtaken(append(b"2"), theirs)
    tree = commit(persistence, rebase(work, persistence.latest()))
    row = resolve(tree, "/s").row
    assert row is not None
    assert (row.version, row.min_override, row.max_override, row.config) == (2, 1, 9, "c")
    assert (row.attributes["owner"], row.whole_size) == ("me", 2)
    assert (row.size, tree.content(row)) == (1, b"2")


def test_appends_bring_their_own_facts() -> None:
    def mine(work: Working) -> object:
        return edit.write(work, "/s", SERIES, stored(b"2"), time_column="t", min_override=5)

    persistence, work = overtaken(mine, change("/s", max_override=9))
    row = resolve(commit(persistence, rebase(work, persistence.latest())), "/s").row
    assert row is not None
    assert (row.time_column, row.min_override, row.max_override) == ("t", 5, 9)
    persistence, work = overtaken(mine, change("/s", min_override=5))  # both say the same
    assert rows_of(rebase(work, persistence.latest()))[0].min_override == 5
    persistence, work = overtaken(mine, change("/s", min_override=6))
    with pytest.raises(WriteConflictError, match="has changed the min_override of /s, too"):
        rebase(work, persistence.latest())


# One wins


@pytest.mark.parametrize(
    ("mine", "theirs", "path", "message"),
    [
        # The same node
        (write("/a/f"), write("/a/f"), "/a/f", "has written /a/f meanwhile"),
        (write("/a/f"), move("/a/f", "/a/x"), "/a/f", "has changed /a/f meanwhile"),
        (write("/a/f"), change("/a/f", factory="x"), "/a/f", "has changed /a/f meanwhile"),
        (write("/a/f"), remove("/a/f"), "/a/f", "has removed /a/f meanwhile"),
        (write("/a/f"), move("/a/f", "/c"), "/a/f", "has moved /a/f meanwhile"),
        (move("/a/f", "/a/x"), move("/a/f", "/a/y"), "/a/x", "has changed /a/x meanwhile"),
        (move("/a/f", "/b"), move("/a/f", "/c"), "/a/f", "has moved /a/f meanwhile"),
        (move("/a/f", "/b"), write("/a/f"), "/a/f", "has written /a/f meanwhile"),
        (move("/a", "/x"), move("/a", "/y"), "/x", "has changed /x meanwhile"),
        (remove("/a/f"), write("/a/f"), "/a/f", "has written /a/f meanwhile"),
        (remove("/a/f"), remove("/a/f"), "/a/f", "has removed /a/f meanwhile"),
        (remove("/l"), move("/l", "/c"), "/l", "has moved /l meanwhile"),
        (restore("/old"), restore("/old"), "/old", "has changed /old meanwhile"),
        (change("/a/f", factory="x"), write("/a/f"), "/a/f", "has written /a/f meanwhile"),
        (append(b"2"), remove("/s"), "/s", "has removed /s meanwhile"),
        (append(b"2"), move("/s", "/c"), "/s", "has moved /s meanwhile"),
        (change("/s", max_override=1), append(b"2"), "/s", "has written /s meanwhile"),
        (all_of(move("/s", "/t"), append(b"2", "/t")), append(b"3"), "/t", "has written /t"),
        (all_of(append(b"2"), move("/s", "/t")), append(b"3"), "/t", "has written /t"),
        # The same name
        (write("/a/x"), write("/a/x"), "/a/x", "has put a data at /a/x meanwhile"),
        (write("/a/x"), mkdir("/a/x"), "/a/x", "has put a directory at /a/x meanwhile"),
        (mkdir("/x"), link("/x"), "/x", "has put a symlink at /x meanwhile"),
        (make("/x"), link("/x"), "/x", "has put a symlink at /x meanwhile"),
        (make("/x"), write("/x"), "/x", "has put a data at /x meanwhile"),
        (mkdir("/x"), make("/x"), "/x", "has put a directory at /x meanwhile"),
        (all_of(make("/x"), move("/x", "/y")), make("/y"), "/y", "has put a directory at /y"),
        (append(b"2", "/x"), write("/x"), "/x", "has put a data at /x meanwhile"),
        (write("/x"), append(b"2", "/x"), "/x", "has put a data:series at /x meanwhile"),
        (all_of(append(b"2", "/t"), change("/t", max_override=9)), append(b"3", "/t"), "/t",
         "has put a data:series at /t meanwhile"),
        (all_of(make("/n"), write("/n/x")), all_of(make("/n"), write("/n/x")), "/n/x",
         "has put a data at /n/x meanwhile"),
        (move("/b/h", "/c"), write("/c/h"), "/c/h", "has put a data at /c/h meanwhile"),
        (move("/a/f", "/x"), move("/b/h", "/x"), "/x", "has put a data at /x meanwhile"),
        (restore("/old"), write("/old"), "/old", "has put a data at /old meanwhile"),
        (all_of(append(b"2"), write("/t")), move("/s", "/t"), "/t", "has put a data:series at /t"),
        # Directories that go
        (write("/c/x"), remove("/c"), "/c/x", "has removed c, where /c/x is"),
        (write("/a/sub/x"), remove("/a"), "/a/sub/x", "has removed a, where /a/sub/x is"),
        (write("/a/sub/g"), remove("/a"), "/a/sub/g", "has removed a, where /a/sub/g is"),
        (remove("/a/sub/g"), remove("/a"), "/a/sub/g", "has removed a, where"),
        (move("/b", "/c"), remove("/c"), "/c/b", "has removed c, where /c/b is"),
        (restore("/a/older"), remove("/a"), "/a/older", "has removed a, where"),
        (all_of(mkdir("/c/n"), write("/c/n/x")), remove("/c"), "/c/n", "has removed c, where"),
        (write("/a/sub/x"), all_of(move("/a/sub", "/c"), remove("/c")), "/a/sub/x",
         "has removed c, where /a/sub/x is"),
        (remove("/c"), write("/c/x"), "/c", "has changed what is in /c meanwhile"),
        (remove("/a"), write("/a/sub/x"), "/a", "has changed what is in /a meanwhile"),
        (remove("/a"), write("/a/sub/g"), "/a", "has changed what is in /a meanwhile"),
        (remove("/a"), move("/b", "/a/sub"), "/a", "has changed what is in /a meanwhile"),
        (remove("/a"), move("/a/sub", "/c"), "/a", "has changed what is in /a meanwhile"),
        (remove("/a"), remove("/a/f"), "/a", "has changed what is in /a meanwhile"),
        # Circles
        (move("/a", "/c"), move("/c", "/a"), "/c/a", "has moved what is above /c/a into it"),
        (move("/a", "/c"), move("/c", "/a/sub"), "/c/a", "has moved what is above /c/a into it"),
        (all_of(mkdir("/c/n"), move("/a", "/c/n")), move("/c", "/a/sub"), "/c/n", "into it"),
    ],
)  # fmt: skip
def test_one_wins(mine: Step, theirs: Step, path: str, message: str) -> None:
    persistence, work = overtaken(mine, theirs)
    before = dict(work.drafts)
    newest = persistence.latest()
    with pytest.raises(WriteConflictError, match=message) as caught:
        rebase(work, newest)
    assert caught.value.path == path
    assert caught.value.txn_seq == newest.txn_seq
    assert caught.value.message.startswith(f"transaction {newest.txn_seq} has ")
    assert caught.value.hint == AGAIN
    assert work.drafts == before, "what was to be done is as it was"


@pytest.mark.parametrize(
    ("mine", "theirs", "message"),
    [
        # Gone and back again: it is not known what others meant by that.
        (append(b"2"), [remove("/s"), restore("/s"), append(b"3")], "has written /s meanwhile"),
        (append(b"2"), [move("/s", "/c"), move("/c/s", "/")], "has changed /s meanwhile"),
        # A circle over three.
        (move("/a", "/b"), [move("/b", "/c"), move("/c", "/a/sub")], "into it"),
        # Moved away, and then removed where it went.
        (write("/a/sub/x"), [move("/a/sub", "/c"), remove("/c")], "has removed c, where"),
        (write("/a/sub/x"), [move("/a/sub", "/c"), move("/c", "/b"), remove("/b")], "removed b"),
        (write("/a/sub/x"), [move("/a/sub", "/c"), remove("/c/sub")], "has removed sub, where"),
    ],
)
def test_one_wins_over_several(mine: Step, theirs: list[Step], message: str) -> None:
    persistence, work = overtaken(mine, *theirs)
    with pytest.raises(WriteConflictError, match=message):
        rebase(work, persistence.latest())


def test_where_a_directory_was_may_go() -> None:
    """What counts is where it is now, not where it has been."""
    steps = [move("/a/sub", "/c"), move("/c/sub", "/b"), remove("/c"), remove("/a")]
    persistence, work = overtaken(write("/a/sub/x"), *steps)
    tree = commit(persistence, rebase(work, persistence.latest()))
    assert seen(tree)["/b/sub/x"] == b"new"


def test_what_was_removed_and_restored_between_is_there() -> None:
    persistence, work = overtaken(write("/a/x"), remove("/a"), restore("/a"))
    assert "/a/x" in seen(commit(persistence, rebase(work, persistence.latest())))


def test_a_parent_that_nobody_knows_is_a_conflict() -> None:
    persistence, work = overtaken(write("/a/x"))
    ((key, draft),) = work.drafts.items()
    stranger = replace(draft.parents[0], node_id=draft.row.node_id[::-1])
    work.drafts[key] = replace(draft, parents=(stranger,))
    with pytest.raises(WriteConflictError, match="another transaction has removed") as caught:
        rebase(work, persistence.latest())
    assert caught.value.txn_seq is None


def test_rebase_keeps_paths_and_parents() -> None:
    persistence, work = overtaken(write("/l/x"), append(b"2"))
    (draft,) = rebase(work, persistence.latest()).drafts.values()
    assert draft.path == "/l/x"
    assert [row.name for row in draft.parents] == ["a"]
    assert draft.row.part_id != ROOT
