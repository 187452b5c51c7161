"""Glob patterns over paths, and what their wildcards stood for; `expand` finds the nodes.

`*` is any text within a name, `?` one character, `[a-z]` and `[!a-z]` one of some. `**` is a whole
component: zero or more directories; at the end of a pattern, everything below. Every `*` captures
what it stood for, `**` the directories it crossed, from the left, and each as little as it can.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from millpond.base.errors import PathSyntaxError
from millpond.fs.entry import EntryType
from millpond.fs.paths import child, join, parts
from millpond.fs.resolve import Located, follow_link

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millpond.fs.entry import Row
    from millpond.fs.tree import TreeLike

DIRECTORIES: Final = "**"
_SPECIAL: Final = re.compile(r"[*?\[]")


def is_pattern(text: str) -> bool:
    """Whether a text has wildcards.

    >>> is_pattern("/a/*.csv"), is_pattern("/a/b.csv")
    (True, False)
    """
    return _SPECIAL.search(text) is not None


@dataclass(frozen=True, slots=True)
class _Piece:
    """What stands between two `*`: always of the same length, so that it is found in one go."""

    regex: re.Pattern[str]
    width: int


@dataclass(frozen=True, slots=True)
class Component:
    """One name of a pattern."""

    text: str
    pieces: tuple[_Piece, ...]

    @property
    def is_literal(self) -> bool:
        """Whether it stands for one name only."""
        return not is_pattern(self.text)

    @property
    def is_directories(self) -> bool:
        """Whether it is `**`."""
        return self.text == DIRECTORIES

    def match(self, name: str) -> tuple[str, ...] | None:
        """What each `*` stands for in a name; None if the name does not fit."""
        first, last = self.pieces[0], self.pieces[-1]
        if len(self.pieces) == 1:
            return () if first.regex.fullmatch(name) else None
        if not first.regex.match(name):
            return None
        captures: list[str] = []
        start = first.width
        for piece in self.pieces[1:-1]:
            found = piece.regex.search(name, start)
            if found is None:
                return None
            captures.append(name[start : found.start()])
            start = found.end()
        end = len(name) - last.width
        if end < start or not last.regex.match(name, end):
            return None
        return (*captures, name[start:end])


@dataclass(frozen=True, slots=True)
class _Thread:
    """One way to read a path so far: which component comes next, and what was captured."""

    at: int
    captures: tuple[str, ...] = ()
    crossed: str = ""
    """The directories that the `**` at `at` has crossed."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern, made by `parse`.

    >>> pattern = Pattern.parse("/sensors/**/*-*.csv")
    >>> pattern.match("/sensors/north/deep/lake-2024.csv")
    ('north/deep', 'lake', '2024')
    >>> pattern.match("/sensors/lake.csv") is None
    True
    """

    text: str
    components: tuple[Component, ...] = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Read a pattern: an absolute path with wildcards, or without."""
        return cls(text, tuple(_component(part, text) for part in parts(text)))

    @property
    def prefix(self) -> str:
        """The path above everything that can match: the components before the first wildcard.

        >>> Pattern.parse("/a/b/c*/d").prefix
        '/a/b'
        """
        names: list[str] = []
        for component in self.components:
            if not component.is_literal:
                break
            names.append(component.text)
        return join(*names)

    @property
    def capture_count(self) -> int:
        """How many values a match captures."""
        return sum(1 if c.is_directories else len(c.pieces) - 1 for c in self.components)

    def match(self, path: str) -> tuple[str, ...] | None:
        """What the wildcards stand for in a path; None if it does not fit. Links are not known."""
        threads = self.start()
        for name in parts(path):
            threads = self.step(threads, name)
        return self.captured(threads)

    # A path is read name by name, all ways to read it side by side: the better one comes first,
    # and of two that go on at the same component only that one is kept.

    def start(self) -> tuple[_Thread, ...]:
        """The ways to read nothing."""
        return self._spread([_Thread(0)])

    def step(
        self, threads: Iterable[_Thread], name: str, *, crosses: bool = True
    ) -> tuple[_Thread, ...]:
        """The ways to read one name more; without `crosses`, no `**` may stand for it."""
        found: list[_Thread] = []
        for thread in threads:
            if thread.at == len(self.components):
                continue
            component = self.components[thread.at]
            if component.is_directories:
                if crosses:
                    crossed = f"{thread.crossed}/{name}" if thread.crossed else name
                    found.append(_Thread(thread.at, thread.captures, crossed))
                continue
            captures = component.match(name)
            if captures is not None:
                found.append(_Thread(thread.at + 1, thread.captures + captures))
        return self._spread(found)

    def captured(self, threads: Iterable[_Thread]) -> tuple[str, ...] | None:
        """The captures of a path that was read to its end; None if it does not fit."""
        end = len(self.components)
        return next((thread.captures for thread in threads if thread.at == end), None)

    def names_after(self, threads: Iterable[_Thread]) -> list[str] | None:
        """The only names that can come next, sorted; None if a wildcard comes next."""
        nexts = [self.components[t.at] for t in threads if t.at < len(self.components)]
        if not all(component.is_literal for component in nexts):
            return None
        return sorted({component.text for component in nexts})

    def _spread(self, threads: Iterable[_Thread]) -> tuple[_Thread, ...]:
        """The same ways, and those on which a `**` ends here, which are better."""
        found: dict[int, _Thread] = {}
        for thread in threads:
            staying: list[_Thread] = []
            while self._may_end(thread):
                staying.append(thread)
                thread = _Thread(thread.at + 1, (*thread.captures, thread.crossed))
            for each in (thread, *reversed(staying)):
                found.setdefault(each.at, each)
        return tuple(found.values())

    def _may_end(self, thread: _Thread) -> bool:
        if thread.at == len(self.components) or not self.components[thread.at].is_directories:
            return False
        return thread.crossed != "" or thread.at < len(self.components) - 1


@dataclass(frozen=True, slots=True)
class Match:
    """A node that fits, and what the wildcards stood for."""

    located: Located
    captures: tuple[str, ...] = ()


def expand(tree: TreeLike, pattern: Pattern, *, follow: bool = False) -> Iterator[Match]:
    """The nodes that fit, in the order of their names, a directory before what is in it.

    Only directories that can hold a match are looked into. A link that a name of the pattern
    stands for is followed; `**` crosses real directories alone, so nothing goes round in circles.
    With `follow`, a link that fits is what it leads to, or itself where it leads nowhere.
    """
    root = Located("/", ())
    captures = pattern.captured(pattern.start())
    if captures is not None:
        yield Match(root, captures)
    levels = [_entries(tree, pattern, root, pattern.start())]
    while levels:
        entry = next(levels[-1], None)
        if entry is None:
            levels.pop()
            continue
        located, threads, inner = entry
        captures = pattern.captured(threads)
        if captures is not None:
            target = follow_link(tree, located) if follow else None
            yield Match(target or located, captures)
        where = _directory(tree, located) if inner else None
        if where is not None:
            levels.append(_entries(tree, pattern, where, inner))


_Threads = tuple[_Thread, ...]


def _entries(
    tree: TreeLike, pattern: Pattern, where: Located, threads: _Threads
) -> Iterator[tuple[Located, _Threads, _Threads]]:
    """What may fit in a directory, how it is read, and how it is read when one goes into it."""
    inside = tree.children(where.node_id)
    names = pattern.names_after(threads)
    rows: Iterable[Row | None] = inside.values() if names is None else map(inside.get, names)
    for row in rows:
        if row is None:
            continue
        found = pattern.step(threads, row.name)
        if not found:
            continue
        is_link = row.entry_type is EntryType.SYMLINK
        onward = pattern.step(threads, row.name, crosses=False) if is_link else found
        inner = tuple(thread for thread in onward if thread.at < len(pattern.components))
        yield Located(child(where.path, row.name), (*where.chain, row)), found, inner


def _directory(tree: TreeLike, located: Located) -> Located | None:
    """The directory that a node is, or leads to."""
    if located.entry_type is EntryType.SYMLINK:
        target = follow_link(tree, located)
        return target if target is not None and target.entry_type.is_directory else None
    return located if located.entry_type.is_directory else None


# Reading patterns


def _component(part: str, text: str) -> Component:
    if part == "..":
        raise PathSyntaxError(
            f"the pattern {text!r} leads upwards", path=text, hint="write it without .."
        )
    if part == DIRECTORIES:
        return Component(part, ())
    if DIRECTORIES in part:
        raise PathSyntaxError(
            f"** is not a whole name in {part!r} of the pattern {text!r}",
            path=text,
            hint="write * within a name, and ** between slashes for any directories",
        )
    pieces: list[_Piece] = []
    regex, width, at = "", 0, 0
    while at < len(part):
        if part[at] == "*":
            pieces.append(_piece(regex, width))
            regex, width, at = "", 0, at + 1
            continue
        if part[at] == "[":
            one, at = _characters(part, at, text)
        else:
            one, at = "." if part[at] == "?" else re.escape(part[at]), at + 1
        regex, width = regex + one, width + 1
    return Component(part, (*pieces, _piece(regex, width)))


def _piece(regex: str, width: int) -> _Piece:
    return _Piece(re.compile(regex, re.DOTALL), width)


def _characters(part: str, start: int, text: str) -> tuple[str, int]:
    """The regular expression of `[...]`, and where the part goes on."""
    at = start + 1
    is_negated = part[at : at + 1] in ("!", "^")
    at += is_negated
    end = part.find("]", at + 1)  # one that comes first is a character
    if end < 0:
        raise PathSyntaxError(
            f"the [ in {part!r} of the pattern {text!r} is not closed",
            path=text,
            hint="close it with ], or write [[] for the character itself",
        )
    found = ""
    while at < end:
        is_range = part[at + 1] == "-" and at + 2 < end
        low, high = part[at], part[at + 2] if is_range else part[at]
        if high < low:
            raise PathSyntaxError(
                f"{low}-{high} in {part!r} of the pattern {text!r} goes backwards",
                path=text,
                hint=f"write {high}-{low}",
            )
        found += f"{re.escape(low)}-{re.escape(high)}" if is_range else re.escape(low)
        at += 3 if is_range else 1
    return f"[{'^' if is_negated else ''}{found}]", end + 1
