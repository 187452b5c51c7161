"""Walking a tree, and what a path to be listed means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.fs.ponds import tree_of

from millpond.base.errors import LinkLoopError, NoDirectoryError, PathNotFoundError
from millpond.fs.walk import listing, walk

if TYPE_CHECKING:
    from tests.fs.ponds import Content

    from millpond.fs.tree import TreeLike

POND: dict[str, Content] = {
    "/a/x": b"1",
    "/a/b/y": b"2",
    "/a-b": b"3",
    "/empty": None,
    "/.hidden/z": b"4",
}


def walked(tree: TreeLike, path: str = "/", *, follow: bool = False) -> list[str]:
    return [found.path for found in walk(tree, path, follow=follow)]


def listed(tree: TreeLike, text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(match.located.path, match.captures) for match in listing(tree, text)]


def test_walk_is_depth_first_in_name_order() -> None:
    assert walked(tree_of(POND)) == [
        "/.hidden", "/.hidden/z", "/a", "/a/b", "/a/b/y", "/a/x", "/a-b", "/empty",
    ]  # fmt: skip


def test_walk_of_a_part_reads_that_part() -> None:
    tree = tree_of(POND)
    assert walked(tree, "/a") == ["/a/b", "/a/b/y", "/a/x"]
    assert tree.misses == 3  # the root, /a, /a/b
    assert walked(tree, "/empty") == []


def test_walk_goes_only_so_deep() -> None:
    tree = tree_of(POND)
    assert [found.path for found in walk(tree, depth=1)] == ["/.hidden", "/a", "/a-b", "/empty"]
    assert tree.misses == 1  # the root
    two = [found.path for found in walk(tree, depth=2)]
    assert two == ["/.hidden", "/.hidden/z", "/a", "/a/b", "/a/x", "/a-b", "/empty"]
    assert list(walk(tree, depth=0)) == []


def test_walk_is_lazy() -> None:
    tree = tree_of(POND)
    assert next(walk(tree)).path == "/.hidden"
    assert tree.misses == 1


def test_walk_refuses_at_once_what_is_no_directory() -> None:
    tree = tree_of(POND)
    with pytest.raises(NoDirectoryError, match="/a/x is no directory but a data") as caught:
        walk(tree, "/a/x")
    assert caught.value.hint == "/a/x names the entry itself"
    with pytest.raises(PathNotFoundError, match="there is nothing at /b"):
        walk(tree, "/b")


LINKS: dict[str, Content] = {
    "/d/x": b"1",
    "/d/up": "..",
    "/d/me": ".",
    "/l": "d",
    "/file": "d/x",
    "/gone": "nowhere",
    "/round": "round",
}


def test_walk_shows_links_and_does_not_follow_them() -> None:
    tree = tree_of(LINKS)
    assert walked(tree) == ["/d", "/d/me", "/d/up", "/d/x", "/file", "/gone", "/l", "/round"]
    assert walked(tree, "/l") == ["/l/me", "/l/up", "/l/x"]  # the start is followed by its name


def test_walk_follows_links_but_no_directory_into_itself() -> None:
    tree = tree_of(LINKS)
    assert walked(tree, follow=True) == [
        "/d", "/d/me", "/d/up", "/d/x", "/file", "/gone", "/l", "/l/me", "/l/up", "/l/x", "/round",
    ]  # fmt: skip
    found = {located.path: located for located in walk(tree, follow=True)}
    assert (found["/l/x"].real_path, found["/file"].real_path) == ("/d/x", "/d/x")
    assert found["/d/up"].real_path == "/"
    assert found["/gone"].entry_type == found["/round"].entry_type == "symlink"


def test_walk_follows_links_across() -> None:
    tree = tree_of({"/a/to-b": "../b", "/b/to-a": "../a"})
    assert walked(tree, follow=True) == [
        "/a", "/a/to-b", "/a/to-b/to-a", "/b", "/b/to-a", "/b/to-a/to-b",
    ]  # fmt: skip


def test_walk_of_a_deep_tree() -> None:
    assert len(walked(tree_of({"/d" * 1200: None}))) == 1200


def test_listing_of_paths() -> None:
    tree = tree_of(POND)
    inside = [("/.hidden", ()), ("/a", ()), ("/a-b", ()), ("/empty", ())]
    assert listed(tree, "/") == inside
    assert listed(tree, "/a") == [("/a", ())]
    assert listed(tree, "/a/") == [("/a/b", ()), ("/a/x", ())]
    assert listed(tree, "/empty/") == []
    assert listed(tree, "/a/x") == [("/a/x", ())]


def test_listing_of_patterns() -> None:
    tree = tree_of(POND)
    assert listed(tree, "/a*") == [("/a", ("",)), ("/a-b", ("-b",))]
    assert listed(tree, "/a*/") == [("/a/b", ("",)), ("/a/x", ("",))]  # /a-b is no directory
    assert listed(tree, "/**/y") == [("/a/b/y", ("a/b",))]
    assert listed(tree, "/q*") == listed(tree, "/q*/") == []


def test_listing_of_links() -> None:
    tree = tree_of(LINKS)
    (entry,) = listing(tree, "/l")
    assert entry.located.entry_type == "symlink"
    assert listed(tree, "/l/") == [("/l/me", ()), ("/l/up", ()), ("/l/x", ())]
    assert listed(tree, "/l*/") == [("/l/me", ("",)), ("/l/up", ("",)), ("/l/x", ("",))]
    assert listed(tree, "/gone") == [("/gone", ())]
    with pytest.raises(LinkLoopError):
        listing(tree, "/round/")
    with pytest.raises(PathNotFoundError, match="is a symbolic link to nowhere"):
        listing(tree, "/gone/")


def test_listing_of_what_is_not_there() -> None:
    tree = tree_of(POND)
    with pytest.raises(PathNotFoundError, match="there is nothing at /a/z"):
        listing(tree, "/a/z")
    with pytest.raises(NoDirectoryError, match="no directory but a data"):
        listing(tree, "/a/x/")
