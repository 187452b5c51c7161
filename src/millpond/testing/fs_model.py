"""A pond as a plain dictionary of nodes: slow, simple, and what every `Persistence` is held to.

An operation is first read against the dictionary, which gives deeds or a `Refusal`; a deed names
nodes, not paths, so that it can be done again on a newer state, as a writer who lost a race does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Final, Literal

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

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = 0
MOST_LINKS: Final = 40
_IDENTS = count(1)

Kind = Literal["directory", "symlink", "data", "data:series"]


class Refusal(Exception):  # noqa: N818
    """What a pond must answer with an error of this kind."""

    def __init__(self, kind: type[MillpondError]) -> None:
        super().__init__(kind.__name__)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Node:
    """A node, also one that was removed."""

    ident: int
    parent: int
    name: str
    kind: Kind
    versions: tuple[bytes, ...] = ()
    target: str = ""
    removed: int | None = None
    """The transaction that removed it."""


@dataclass(frozen=True, slots=True)
class Deed:
    """What happens to one node."""

    what: Literal["make", "write", "again", "place", "remove", "restore"]
    """`again` writes over what the same transaction has written."""
    node: Node
    """The node afterwards; for a removal, as it was."""
    data: bytes = b""


class Model:
    """The nodes of a pond after a transaction, or within one."""

    def __init__(self, nodes: dict[int, Node] | None = None, *, seq: int = 0) -> None:
        root = Node(ROOT, ROOT, "", "directory")
        self.nodes = {ROOT: root} if nodes is None else dict(nodes)
        self.seq = seq
        """The transaction that was last, or is being made."""
        self.made: set[int] = set()
        self.written: set[int] = set()

    def next(self) -> Model:
        """A transaction on top."""
        return Model(self.nodes, seq=self.seq + 1)

    # Looking

    def inside(self, directory: int) -> dict[str, Node]:
        """What is in a directory, by name."""
        found = [
            node
            for node in self.nodes.values()
            if node.parent == directory and node.removed is None and node.ident != ROOT
        ]
        return {node.name: node for node in sorted(found, key=lambda node: node.name)}

    def paths(self, directory: int = ROOT, above: str = "") -> Iterator[tuple[str, Node]]:
        """Every node that is reached without links, depth first."""
        for name, node in self.inside(directory).items():
            yield f"{above}/{name}", node
            yield from self.paths(node.ident, f"{above}/{name}")

    def glob(self, pattern: str) -> set[str]:
        """The paths without links that fit a pattern of `*`, `?` and `**`, which is not last."""
        wanted = ""
        for part in pattern.split("/")[1:]:
            one = "/" + part.replace("*", "[^/]*").replace("?", "[^/]")
            wanted += "(?:/[^/]+)*" if part == "**" else one
        return {path for path, _ in self.paths() if re.fullmatch(wanted, path)}

    def find(self, path: str, *, follow: bool = True) -> Node | None:
        """The node at a path."""
        names = [name for name in path.split("/") if name]
        return self._find(self.nodes[ROOT], names, follow, count(1))

    def _find(self, here: Node, names: list[str], follow: bool, links: count[int]) -> Node | None:
        for number, name in enumerate(names, 1):
            if here.kind != "directory":
                raise Refusal(NoDirectoryError)
            if name == "..":
                here = self.nodes[here.parent]
                continue
            node = self.inside(here.ident).get(name)
            if node is None:
                return None
            if node.kind != "symlink" or (number == len(names) and not follow):
                here = node
                continue
            if next(links) > MOST_LINKS:
                raise Refusal(LinkLoopError)
            start = self.nodes[ROOT] if node.target.startswith("/") else here
            steps = [step for step in node.target.split("/") if step not in ("", ".")]
            target = self._find(start, steps, True, links)
            if target is None:
                return None
            here = target
        return here

    def above(self, node: Node) -> list[Node]:
        """The directories above a node, the root last; a circle is an error."""
        found: list[Node] = []
        while node.ident != ROOT:
            node = self.nodes[node.parent]
            assert node not in found, "directories lie in each other"
            found.append(node)
        return found

    def _place(self, path: str) -> tuple[Node, str]:
        directory, _, name = path.rpartition("/")
        where = self.find(directory)
        if where is None:
            raise Refusal(PathNotFoundError)
        if where.kind != "directory":
            raise Refusal(PathTypeError)
        if name in self.inside(where.ident):
            raise Refusal(PathExistsError)
        return where, name

    # What operations mean

    def make(self, path: str, kind: Kind, *, data: bytes = b"", target: str = "") -> list[Deed]:
        """Something new."""
        where, name = self._place(path)
        versions = () if kind in ("directory", "symlink") else (data,)
        return [Deed("make", Node(next(_IDENTS), where.ident, name, kind, versions, target))]

    def make_directory(self, path: str, *, parents: bool) -> list[Deed]:
        """A directory, and those above it that are missing."""
        found = self.find(path)
        if found is not None:
            if parents and found.kind == "directory":
                return []
            raise Refusal(PathExistsError)
        if not parents:
            return self.make(path, "directory")
        names = path.split("/")[1:]
        depth = max(n for n in range(len(names)) if self.find("/".join(["", *names[:n]])))
        here = self.find("/".join(["", *names[:depth]]))
        assert here is not None
        if names[depth] in self.inside(here.ident):  # a link that leads nowhere
            raise Refusal(PathNotFoundError)
        deeds: list[Deed] = []
        for name in names[depth:]:
            here = Node(next(_IDENTS), here.ident, name, "directory")
            deeds.append(Deed("make", here))
        return deeds

    def write(self, path: str, kind: Kind, data: bytes) -> list[Deed]:
        """A new version, or a new file; what one transaction writes is one version."""
        found = self.find(path)
        if found is None:
            return self.make(path, kind, data=data)
        if found.kind == "directory":
            raise Refusal(DirectoryError)
        if found.kind != kind:
            raise Refusal(PathTypeError)
        is_mine = found.ident in self.made | self.written
        return [Deed("again" if is_mine else "write", found, data)]

    def remove(self, path: str, *, recursive: bool) -> list[Deed]:
        """Away with it."""
        found = self.find(path, follow=False)
        if found is None:
            raise Refusal(PathNotFoundError)
        if self.inside(found.ident) and not recursive:
            raise Refusal(NotEmptyError)
        return [Deed("remove", found)]

    def move(self, source: str, target: str) -> list[Deed]:
        """To another name, another directory, or into a directory."""
        found = self.find(source, follow=False)
        if found is None:
            raise Refusal(PathNotFoundError)
        if found.kind != "directory" and self.find(target, follow=False) == found:
            return []
        into = self.find(target)
        if into is not None and into.kind == "directory":
            target = f"{target}/{found.name}"
        there = self.find(target, follow=False)
        if there is not None:
            if there.ident == found.ident:
                return []
            raise Refusal(PathExistsError)
        where, name = self._place(target)
        if found in (where, *self.above(where)):
            raise Refusal(PathSyntaxError)
        return [Deed("place", replace(found, parent=where.ident, name=name))]

    def restore(self, path: str) -> list[Deed]:
        """What was last removed at a path comes back; of two that went together, the younger."""
        if self.find(path, follow=False) is not None:
            raise Refusal(PathExistsError)
        directory, _, name = path.rpartition("/")
        where = self.find(directory)
        gone = [
            (node.removed, node.ident)
            for node in self.nodes.values()
            if where is not None
            and (node.parent, node.name) == (where.ident, name)
            and node.removed is not None
        ]
        if not gone:
            raise Refusal(PathNotFoundError)
        return [Deed("restore", self.nodes[max(gone)[1]])]

    # Deeds

    def do(self, deed: Deed) -> None:
        """Let it happen to the node, whatever became of it meanwhile."""
        ident = deed.node.ident
        if deed.what == "make":
            self.nodes[ident] = deed.node
            self.made.add(ident)
            return
        now = self.nodes[ident]
        if deed.what in ("write", "again"):
            older = now.versions[:-1] if deed.what == "again" else now.versions
            self.nodes[ident] = replace(now, versions=(*older, deed.data))
            self.written.add(ident)
        elif deed.what == "place":
            self.nodes[ident] = replace(now, parent=deed.node.parent, name=deed.node.name)
        elif deed.what == "restore":
            self.nodes[ident] = replace(now, removed=None)
        elif ident in self.made and not any(n.parent == ident for n in self.nodes.values()):
            del self.nodes[ident]  # it never was
        else:
            self.nodes[ident] = replace(now, removed=self.seq)

    def check(self) -> None:
        """No two things have one name, and nothing lies in itself."""
        names = [(n.parent, n.name) for n in self.nodes.values() if n.removed is None]
        assert len(names) == len(set(names)), "two nodes have the same name"
        for node in self.nodes.values():
            self.above(node)
