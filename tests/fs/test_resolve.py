"""From paths to nodes: links of all kinds, and errors that say what is nearby."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.fs.ponds import tree_of

from millpond.base.errors import LinkLoopError, NoDirectoryError, PathNotFoundError, PathSyntaxError
from millpond.fs.entry import ROOT, EntryType
from millpond.fs.resolve import MOST_LINKS, follow_link, resolve, try_resolve

if TYPE_CHECKING:
    from tests.fs.ponds import Content

POND: dict[str, Content] = {
    "/a/b/file": b"1",
    "/a/b/up": "..",
    "/a/b/top": "../../../..",
    "/a/rel": "b/file",
    "/a/odd": ".//b/./",
    "/abs": "/a/b",
    "/chain": "abs",
    "/chained": "/chain/up/rel",
    "/self": "self",
    "/ping": "pong",
    "/pong": "/ping",
    "/long": "long/er",
    "/gone": "a/nothing",
    "/gone2": "gone",
    "/through": "a/b/file/x",
    "/empty": None,
}


def real(path: str, *, follow: bool = True) -> str:
    return resolve(tree_of(POND), path, follow=follow).real_path


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/", "/"),
        ("/..", "/"),
        ("/a/b/file", "/a/b/file"),
        ("/a/b/../b/./file", "/a/b/file"),
        ("/a/rel", "/a/b/file"),
        ("/a/odd", "/a/b"),
        ("/a/odd/file", "/a/b/file"),
        ("/abs", "/a/b"),
        ("/abs/file", "/a/b/file"),
        ("/chain", "/a/b"),
        ("/chain/file", "/a/b/file"),
        ("/chained", "/a/b/file"),
        ("/abs/up", "/a"),
        ("/abs/up/rel", "/a/b/file"),
        ("/abs/..", "/a"),  # where the link leads, not where it is
        ("/chain/../rel", "/a/b/file"),
        ("/a/b/top", "/"),
        ("/a/b/top/abs/file", "/a/b/file"),
        ("/abs/up/b/up/b/up/b/file", "/a/b/file"),
    ],
)
def test_where_paths_lead(path: str, where: str) -> None:
    assert real(path) == where


def test_the_path_is_kept_as_it_was_asked_for() -> None:
    tree = tree_of(POND)
    found = resolve(tree, "//chain/./file/")
    assert (found.path, found.real_path) == ("/chain/file", "/a/b/file")
    assert found.node_id == resolve(tree, "/a/b/file").node_id
    assert [row.name for row in found.parents] == ["a", "b"]
    assert found.row is not None
    assert found.row.name == "file"
    root = resolve(tree, "/")
    assert (root.row, root.node_id, root.entry_type) == (None, ROOT, EntryType.DIRECTORY)


def test_without_follow_a_link_at_the_end_is_itself() -> None:
    assert real("/chain", follow=False) == "/chain"
    assert real("/chain/up", follow=False) == "/a/b/up"  # others on the way are followed
    assert real("/gone", follow=False) == "/gone"
    assert real("/self", follow=False) == "/self"


@pytest.mark.parametrize("path", ["/self", "/ping", "/pong/x", "/long", "/long/x"])
def test_loops(path: str) -> None:
    tree = tree_of(POND)
    with pytest.raises(LinkLoopError, match=f"more than {MOST_LINKS} symbolic links") as caught:
        try_resolve(tree, path)
    assert caught.value.path == path
    assert "is one of them" in str(caught.value.hint)


def test_as_many_links_as_allowed() -> None:
    links: dict[str, Content] = {f"/l{n}": f"l{n + 1}" for n in range(MOST_LINKS)}
    tree = tree_of({**links, f"/l{MOST_LINKS}": b"end"})
    assert resolve(tree, "/l0").real_path == f"/l{MOST_LINKS}"
    tree = tree_of({**links, f"/l{MOST_LINKS}": "end", "/end": b""})
    with pytest.raises(LinkLoopError):
        resolve(tree, "/l0")
    assert resolve(tree, "/l1").real_path == "/end"


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/a/b/file/x", "/a/b/file"),
        ("/a/b/file/..", "/a/b/file"),
        ("/a/rel/x/y", "/a/b/file"),
        ("/through", "/a/b/file"),
    ],
)
def test_files_on_the_way(path: str, where: str) -> None:
    with pytest.raises(NoDirectoryError) as caught:
        try_resolve(tree_of(POND), path)
    assert caught.value.message == (
        f"{path} leads through {where}, which is no directory but a data"
    )
    assert caught.value.hint == f"{where} is where it ends"


def test_bad_paths() -> None:
    with pytest.raises(PathSyntaxError, match="does not begin with /"):
        try_resolve(tree_of(POND), "a")


@pytest.mark.parametrize("path", ["/x", "/a/x", "/x/y/z", "/gone", "/gone/x", "/empty/..x"])
def test_nothing_there(path: str) -> None:
    tree = tree_of(POND)
    assert try_resolve(tree, path) is None
    with pytest.raises(PathNotFoundError, match=f"there is nothing at {path}"):
        resolve(tree, path)


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/a/b/fiel", "did you mean /a/b/file?"),
        ("/chian", "did you mean /chain or /chained?"),
        ("/a/c", "/a has b, odd, rel"),
        ("/a/xyz/deep/er", "/a has b, odd, rel"),
        ("/empty/x", "/empty is empty"),
        ("/chain/fil", "did you mean /chain/file?"),
        ("/zzz", "/ has a, abs, chain, chained, empty, gone, gone2, long and 4 more"),
    ],
)
def test_what_is_nearby(path: str, hint: str) -> None:
    with pytest.raises(PathNotFoundError) as caught:
        resolve(tree_of(POND), path)
    assert caught.value.path == path
    assert caught.value.hint == hint


@pytest.mark.parametrize("path", ["/gone", "/gone/x"])
def test_links_that_lead_nowhere_are_named(path: str) -> None:
    with pytest.raises(PathNotFoundError) as caught:
        resolve(tree_of(POND), path)
    assert caught.value.message == (
        f"there is nothing at {path}: /gone is a symbolic link to a/nothing, which leads nowhere"
    )
    assert caught.value.hint == "make what it leads to, or remove the link"


def test_links_to_links_that_lead_nowhere() -> None:
    with pytest.raises(PathNotFoundError, match="/gone2 is a symbolic link to gone, which leads"):
        resolve(tree_of(POND), "/gone2")


def test_follow_link() -> None:
    tree = tree_of(POND)
    ends = {
        path: follow_link(tree, resolve(tree, path, follow=False))
        for path in ("/chain", "/self", "/gone", "/through", "/a")
    }
    assert {path: end and end.real_path for path, end in ends.items()} == {
        "/chain": "/a/b",
        "/self": None,
        "/gone": None,
        "/through": None,
        "/a": "/a",
    }
