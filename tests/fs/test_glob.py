"""Patterns: what fits, what is captured, and which directories are looked into."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fs.ponds import tree_of

from millpond.base.errors import PathSyntaxError
from millpond.fs.glob import Match, Pattern, expand, is_pattern
from millpond.fs.resolve import resolve

if TYPE_CHECKING:
    from tests.fs.ponds import Content

    from millpond.fs.tree import TreeLike

LAKE: dict[str, Content] = {
    "/sensors/north/lake-2023.csv": b"1",
    "/sensors/north/lake-2024.csv": b"2",
    "/sensors/north/deep/lake-2024.csv": b"3",
    "/sensors/south/lake-2024.csv": b"4",
    "/sensors/south/.hidden": b"5",
    "/sensors/readme.md": b"6",
    "/etc/deep/er/x": b"7",
}


def found(tree: TreeLike, text: str) -> dict[str, tuple[str, ...]]:
    matches = list(expand(tree, Pattern.parse(text)))
    paths = {match.located.path: match.captures for match in matches}
    assert len(paths) == len(matches), "a path came twice"
    assert [p.split("/") for p in paths] == sorted(p.split("/") for p in paths)
    return paths


@pytest.mark.parametrize(
    ("pattern", "path", "captures"),
    [
        ("/", "/", ()),
        ("/a/b", "/a/b", ()),
        ("/a/b", "//a/./b/", ()),
        ("/a/b", "/a/c", None),
        ("/a/b", "/a", None),
        ("/a", "/a/b", None),
        ("/*", "/a", ("a",)),
        ("/*", "/.hidden", (".hidden",)),
        ("/*", "/", None),
        ("/*", "/a/b", None),
        ("/a*", "/a", ("",)),
        ("/a*", "/abc", ("bc",)),
        ("/*a", "/a", ("",)),
        ("/a*a", "/a", None),
        ("/a*a", "/aa", ("",)),
        ("/*.*", "/x.tar.gz", ("x", "tar.gz")),
        ("/*-*-*.csv", "/a-b-c-d.csv", ("a", "b", "c-d")),
        ("/*ab*ab", "/ab", None),
        ("/*ab*ab", "/xabyab", ("x", "y")),
        ("/?", "/a", ()),
        ("/?", "/ab", None),
        ("/?", "/🐟", ()),
        ("/?*?", "/abcd", ("bc",)),
        ("/?", "/\n", ()),
        ("/[abc]x", "/bx", ()),
        ("/[abc]x", "/dx", None),
        ("/[a-c0-9]", "/7", ()),
        ("/[!a-c]", "/b", None),
        ("/[!a-c]", "/d", ()),
        ("/[^a-c]", "/d", ()),
        ("/[]]", "/]", ()),
        ("/[!]]", "/]", None),
        ("/[a-]", "/-", ()),
        ("/[-a]", "/-", ()),
        ("/[[]", "/[", ()),
        ("/[*]", "/*", ()),
        ("/[*]", "/a", None),
        ("/[?]*", "/?x", ("x",)),
        ("/[\\d]", "/5", None),
        ("/[\\d]", "/\\", ()),
        ("/[&&~|]", "/~", ()),
        ("/a.b", "/axb", None),
        ("/a]", "/a]", ()),
        ("/*/*", "/a/b", ("a", "b")),
        ("/*/[bc]/?-*", "/a/b/x-y", ("a", "y")),
        ("/**/x", "/x", ("",)),
        ("/**/x", "/a/x", ("a",)),
        ("/**/x", "/a/b/x", ("a/b",)),
        ("/**/x", "/a/b/y", None),
        ("/**/x", "/x/x", ("x",)),
        ("/a/**/*.csv", "/a/b/c/d.csv", ("b/c", "d")),
        ("/**/b/**/*", "/a/b/c/b/d", ("a", "c/b", "d")),
        ("/**/**/x", "/a/b/x", ("", "a/b")),
        ("/**", "/a/b", ("a/b",)),
        ("/a/**", "/a/b", ("b",)),
        ("/a/**", "/a", None),
        ("/**", "/", None),
        ("/**/**", "/a", ("", "a")),
    ],
)
def test_match(pattern: str, path: str, captures: tuple[str, ...] | None) -> None:
    parsed = Pattern.parse(pattern)
    assert parsed.match(path) == captures
    assert captures is None or len(captures) == parsed.capture_count


@pytest.mark.parametrize(
    ("pattern", "message", "hint"),
    [
        ("", "not empty", "/ is the root"),
        ("a*", "does not begin with /", "write /a*"),
        ("/a/b[c", "is not closed", "close it with ]"),
        ("/[", "is not closed", "close it with ]"),
        ("/[]", "is not closed", "close it with ]"),
        ("/[!]", "is not closed", "close it with ]"),
        ("/[a/b]", "is not closed", "close it with ]"),
        ("/a**b", "'a**b' of the pattern '/a**b'", "between slashes"),
        ("/x/a**", "not a whole name", "between slashes"),
        ("/***", "not a whole name", "between slashes"),
        ("/[z-a]", "goes backwards", "write a-z"),
        ("/a/../*", "leads upwards", "without .."),
    ],
)
def test_bad_patterns(pattern: str, message: str, hint: str) -> None:
    with pytest.raises(PathSyntaxError, match=re.escape(message)) as caught:
        Pattern.parse(pattern)
    assert caught.value.path == pattern
    assert hint in str(caught.value.hint)


def test_patterns_are_values() -> None:
    assert Pattern.parse("/a/*") == Pattern.parse("/a/*") != Pattern.parse("/a/?")
    assert len({Pattern.parse("/a/*"), Pattern.parse("/a/*")}) == 1
    with pytest.raises(AttributeError):
        Pattern.parse("/a").text = "/b"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [("/", "/"), ("/*", "/"), ("/a/b", "/a/b"), ("/a/b*/c", "/a"), ("/a/**/b", "/a")],
)
def test_prefix(pattern: str, prefix: str) -> None:
    assert Pattern.parse(pattern).prefix == prefix
    assert is_pattern(pattern) == (prefix != pattern)


def test_no_pattern_takes_exponential_time() -> None:
    # Each of these would take longer than the age of the world if it were tried in all ways.
    assert Pattern.parse("/" + "a*" * 200 + "b").match("/" + "a" * 20_000) is None
    assert Pattern.parse("/" + "a*" * 200 + "b").match("/" + "a" * 20_000 + "b") is not None
    deep = "/a" * 1_000
    assert Pattern.parse("/**/a" * 50 + "/b").match(deep) is None
    captures = Pattern.parse("/**/a" * 50 + "/**").match(deep)
    assert captures == ("",) * 50 + ("a/" * 949 + "a",)


# Against a naive reader

_NAMES = st.text("ab*", min_size=1, max_size=4)
_PARTS = st.lists(st.sampled_from(["*", "?", "a", "b", "[ab]", "[!a]"]), min_size=1, max_size=5)
_COMPONENTS = st.just("**") | _PARTS.map("".join).filter(lambda part: "**" not in part)


def naive(pattern: str) -> re.Pattern[str]:
    """The same as one regular expression, which tries in all ways, the shortest first."""
    regex = ""
    components = pattern.split("/")[1:]
    for number, component in enumerate(components):
        if component == "**":
            is_last = number == len(components) - 1
            regex += r"/(.+?)" if is_last else r"(|/.+?)"
            continue
        regex += "/" + component.replace("?", "[^/]").replace("*", "([^/]*?)").replace("[!", "[^/")
    return re.compile(regex, re.DOTALL)


@given(
    st.lists(_COMPONENTS, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names)),
    st.lists(_NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names)),
)
def test_match_is_what_a_regular_expression_finds(pattern: str, path: str) -> None:
    expected = naive(pattern).fullmatch(path)
    captures = Pattern.parse(pattern).match(path)
    assert (captures is None) == (expected is None)
    if expected is not None:
        assert captures == tuple(group.removeprefix("/") for group in expected.groups())


@given(st.text(string.printable.replace("/", ""), min_size=1, max_size=20))
def test_escaped_names_fit_themselves_alone(name: str) -> None:
    escaped = "".join(f"[{c}]" if c in "*?[" else c for c in name)
    if name in (".", ".."):
        return
    pattern = Pattern.parse(f"/{escaped}")
    assert pattern.match(f"/{name}") == ()
    assert pattern.match(f"/{name}x") is None


# Trees


def test_expand_finds_nodes_and_captures() -> None:
    tree = tree_of(LAKE)
    assert found(tree, "/sensors/*/lake-*.csv") == {
        "/sensors/north/lake-2023.csv": ("north", "2023"),
        "/sensors/north/lake-2024.csv": ("north", "2024"),
        "/sensors/south/lake-2024.csv": ("south", "2024"),
    }
    assert found(tree, "/sensors/**/lake-2024.csv") == {
        "/sensors/north/deep/lake-2024.csv": ("north/deep",),
        "/sensors/north/lake-2024.csv": ("north",),
        "/sensors/south/lake-2024.csv": ("south",),
    }
    assert found(tree, "/sensors/south/*") == {
        "/sensors/south/.hidden": (".hidden",),
        "/sensors/south/lake-2024.csv": ("lake-2024.csv",),
    }
    assert found(tree, "/nothing/*") == {}
    assert found(tree, "/sensors/readme.md/*") == {}


def test_expand_of_plain_paths_and_the_root() -> None:
    tree = tree_of(LAKE)
    assert found(tree, "/sensors/north") == {"/sensors/north": ()}
    assert found(tree, "/sensors/west") == {}
    assert found(tree, "/") == {"/": ()}
    assert [m.located.node_id for m in expand(tree, Pattern.parse("/sensors/north"))] == [
        resolve(tree, "/sensors/north").node_id
    ]


def test_stars_at_the_end_are_everything_below() -> None:
    tree = tree_of(LAKE)
    everything = found(tree, "/**")
    assert set(everything) == {
        *LAKE,
        *("/sensors", "/sensors/north", "/sensors/north/deep", "/sensors/south"),
        *("/etc", "/etc/deep", "/etc/deep/er"),
    }
    assert everything["/etc/deep/er/x"] == ("etc/deep/er/x",)
    assert found(tree, "/etc/**") == {
        "/etc/deep": ("deep",),
        "/etc/deep/er": ("deep/er",),
        "/etc/deep/er/x": ("deep/er/x",),
    }


@pytest.mark.parametrize(
    ("pattern", "looked_into"),
    [
        ("/", 1),  # the root alone, and nothing in it matters
        ("/sensors", 1),
        ("/*", 1),
        ("/sens*", 1),
        ("/sensors/n*", 2),
        ("/sensors/*", 2),
        ("/sensors/*/x", 4),  # the root, sensors, north, south: readme.md is no directory
        ("/sensors/n*/x", 3),
        ("/sensors/[!n]*/*", 3),
        ("/nothing/**/x", 1),
        ("/etc/**", 4),
        ("/**/north/x", 8),
    ],
)
def test_only_directories_that_can_match_are_looked_into(pattern: str, looked_into: int) -> None:
    tree = tree_of(LAKE)
    found(tree, pattern)
    assert tree.misses == looked_into


def test_expand_is_lazy() -> None:
    tree = tree_of(LAKE)
    assert next(expand(tree, Pattern.parse("/**"))).located.path == "/etc"
    assert tree.misses == 1


# Links

LINKS: dict[str, Content] = {
    "/real/x": b"1",
    "/real/sub/x": b"2",
    "/link": "real",
    "/up/here": "..",
    "/up/x": b"3",
    "/self": "self",
    "/dangling": "nowhere",
    "/file": "/real/x",
    "/through": "/real/x/y",
}


def test_links_are_followed_where_a_name_stands_for_them() -> None:
    tree = tree_of(LINKS)
    assert found(tree, "/link/*") == {"/link/sub": ("sub",), "/link/x": ("x",)}
    assert found(tree, "/l*/x") == {"/link/x": ("ink",)}
    assert found(tree, "/*/here/up/here/real/x") == {"/up/here/up/here/real/x": ("up",)}
    (match,) = expand(tree, Pattern.parse("/l*/sub/x"))
    assert match.located.path == "/link/sub/x"
    assert match.located.real_path == "/real/sub/x"


def test_stars_cross_no_links_and_so_end() -> None:
    tree = tree_of(LINKS)
    assert found(tree, "/**/x") == {"/real/sub/x": ("real/sub",), "/real/x": ("real",),
                                    "/up/x": ("up",)}  # fmt: skip
    # A link that a name stands for is one step, not any number of them.
    assert set(found(tree, "/**/here/up/x")) == {"/up/here/up/x"}
    assert set(found(tree, "/**/here/**/x")) == {
        "/up/here/real/x", "/up/here/real/sub/x", "/up/here/up/x",
    }  # fmt: skip


def test_captures_are_those_of_the_way_that_was_gone() -> None:
    # `**` can't stand for the link lb, so it is l* that does.
    tree = tree_of({"/la/lb": "/r", "/r/x": b""})
    assert found(tree, "/**/l*/**/x") == {"/la/lb/x": ("la", "b", "")}
    assert Pattern.parse("/**/l*/**/x").match("/la/lb/x") == ("", "a", "lb")


def test_links_that_lead_nowhere_are_entries_and_no_directories() -> None:
    tree = tree_of(LINKS)
    assert set(found(tree, "/[dfst]*")) == {"/dangling", "/file", "/self", "/through"}
    assert found(tree, "/[dfst]*/*") == {}
    assert found(tree, "/self/**/x") == {}


def test_follow_gives_what_links_lead_to() -> None:
    tree = tree_of(LINKS)
    plain = {m.located.path: m.located for m in expand(tree, Pattern.parse("/*"))}
    followed = {m.located.path: m for m in expand(tree, Pattern.parse("/*"), follow=True)}
    assert plain["/file"].entry_type == "symlink"
    assert isinstance(followed["/file"], Match)
    assert followed["/file"].located.real_path == "/real/x"
    assert followed["/link"].located.entry_type == "directory"
    for path in ("/self", "/dangling", "/through"):
        assert followed[path].located == plain[path]


def test_deep_trees_need_no_deep_stack() -> None:
    path = "/d" * 1200
    tree = tree_of({f"{path}/x": b""})
    matches = list(expand(tree, Pattern.parse("/**/x")))
    assert [m.captures for m in matches] == [(path[1:],)]
