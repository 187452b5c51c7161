"""Texts that are paths, names or versions, and texts that are not."""

from __future__ import annotations

import pytest

from millpond.base.errors import PathSyntaxError
from millpond.fs.paths import Versioned, check_name, child, join, parts, split, split_version


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/", ()),
        ("//", ()),
        ("/./.", ()),
        ("/a", ("a",)),
        ("/a/b/", ("a", "b")),
        ("//a///b", ("a", "b")),
        ("/a/./b", ("a", "b")),
        ("/a/../b", ("a", "..", "b")),
        ("/ a/b ", (" a", "b ")),
        ("/.a/...", (".a", "...")),
        ("/日本/🐟", ("日本", "🐟")),
    ],
)
def test_parts(path: str, names: tuple[str, ...]) -> None:
    assert parts(path) == names
    assert parts(join(*names)) == names


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("", "a path is not empty", "/ is the root"),
        ("a/b", "'a/b' does not begin with /", "write /a/b"),
        ("../a", "does not begin with /", "write /../a"),
        ("/a\0b", "holds a NUL", "no name in a pond"),
    ],
)
def test_no_paths(path: str, message: str, hint: str) -> None:
    with pytest.raises(PathSyntaxError, match=message) as caught:
        parts(path)
    assert caught.value.path == path
    assert hint in str(caught.value.hint)


def test_split() -> None:
    assert split("/a") == ("/", "a")
    assert split("/a/b/c/") == ("/a/b", "c")
    assert split("/a/../b") == ("/a/..", "b")
    with pytest.raises(PathSyntaxError, match="the root has no name") as caught:
        split("//")
    assert caught.value.hint == "name something in it"


def test_child() -> None:
    assert child("/", "a") == child("", "a") == "/a"
    assert child("/a/", "b") == child("/a", "b") == "/a/b"


@pytest.mark.parametrize(
    ("text", "path", "version"),
    [
        ("/a@v3", "/a", 3),
        ("/a@v0", "/a", 0),
        ("/a@v007", "/a", 7),
        ("/a/b@v12", "/a/b", 12),
        ("/a@v1@v2", "/a@v1", 2),
        ("/a\nb@v2", "/a\nb", 2),
        ("/a", "/a", None),
        ("/a@v", "/a@v", None),
        ("/a@v-1", "/a@v-1", None),
        ("/a@v1x", "/a@v1x", None),
        ("/a@v1/b", "/a@v1/b", None),
        ("/me@home", "/me@home", None),
        ("/a@v٣", "/a@v٣", None),
        ("@v1", "@v1", None),
        ("/a@v" + "9" * 19, "/a@v" + "9" * 19, None),
    ],
)
def test_split_version(text: str, path: str, version: int | None) -> None:
    assert split_version(text) == Versioned(path, version)


GOOD = (
    "a", " ", "...", ".a", "a.b", "a@v", "a@home", "*", "a\nb", "🐟", "x" * 255, "é" * 127,
)  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_names(name: str) -> None:
    assert check_name(name, path=f"/{name}") == name
    assert parts(f"/{name}") == (name,)
    assert split_version(f"/{name}").version is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "names nothing"),
        (".", "names nothing"),
        ("..", "names nothing"),
        ("a/b", "holds a /"),
        ("a\0", "or NUL"),
        ("x" * 256, "longer than 255 bytes"),
        ("é" * 128, "longer than 255 bytes"),
        ("a@v1", "ends like the version"),
        ("@v1", "ends like the version"),
        ("\ud800", "no valid Unicode"),
    ],
)
def test_no_names(name: str, reason: str) -> None:
    with pytest.raises(PathSyntaxError, match=reason) as caught:
        check_name(name, path="/some/path")
    assert caught.value.path == "/some/path"
    assert caught.value.hint == "choose another"
