"""From a path to a node: `Located` keeps the node and the path by which it was reached."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from millpond.base.errors import LinkLoopError, NoDirectoryError, PathNotFoundError
from millpond.fs.entry import ROOT, EntryType, Row
from millpond.fs.paths import join, parts

if TYPE_CHECKING:
    from millpond.fs.tree import TreeLike

MOST_LINKS: Final = 40


@dataclass(frozen=True, slots=True)
class Located:
    """A node and how it was reached. `chain` is where it really is, from the root down."""

    path: str
    """As it was asked for, links not followed."""
    chain: tuple[Row, ...]

    @property
    def row(self) -> Row | None:
        """What is known of the node; None for the root."""
        return self.chain[-1] if self.chain else None

    @property
    def node_id(self) -> str:
        """The node."""
        return self.chain[-1].node_id if self.chain else ROOT

    @property
    def entry_type(self) -> EntryType:
        """What it is."""
        return self.chain[-1].entry_type if self.chain else EntryType.DIRECTORY

    @property
    def real_path(self) -> str:
        """Where it is when all links are followed."""
        return join(*(row.name for row in self.chain))

    @property
    def parents(self) -> tuple[Row, ...]:
        """The directories above it, from the root down."""
        return self.chain[:-1]


def resolve(tree: TreeLike, path: str, *, follow: bool = True) -> Located:
    """The node at a path. Without `follow`, a link at its end is the node itself."""
    found = try_resolve(tree, path, follow=follow)
    if found is None:
        raise not_found(tree, path)
    return found


def try_resolve(tree: TreeLike, path: str, *, follow: bool = True) -> Located | None:
    """Like `resolve`, but None if nothing is there; loops and files in the way are errors."""
    todo = list(reversed(parts(path)))
    chain: list[Row] = []
    links = 0
    while todo:
        name = todo.pop()
        above = chain[-1] if chain else None
        if above is not None and not above.entry_type.is_directory:
            raise _no_directory(path, chain)
        if name == "..":
            del chain[-1:]
            continue
        row = tree.child(above.node_id if above else ROOT, name)
        if row is None:
            return None
        if row.entry_type is not EntryType.SYMLINK or (not todo and not follow):
            chain.append(row)
            continue
        links += 1
        if links > MOST_LINKS:
            raise LinkLoopError(
                f"{path} leads over more than {MOST_LINKS} symbolic links",
                path=path,
                hint=f"{join(*(row.name for row in chain), name)} is one of them",
            )
        target = (tree.content(row) or b"").decode()
        if target.startswith("/"):
            chain.clear()
        todo += [step for step in reversed(target.split("/")) if step not in ("", ".")]
    return Located(join(*parts(path)), tuple(chain))


def follow_link(tree: TreeLike, found: Located) -> Located | None:
    """What a link leads to; None if it leads nowhere, in a circle, or through a file."""
    try:
        return try_resolve(tree, found.path)
    except (LinkLoopError, NoDirectoryError):
        return None


def not_found(tree: TreeLike, path: str) -> PathNotFoundError:
    """An error that says what is nearby."""
    names = list(parts(path))
    missing: list[str] = []
    while names:
        missing.insert(0, names.pop())
        above = try_resolve(tree, join(*names))
        if above is not None:
            break
    else:
        return PathNotFoundError(f"there is nothing at {path}", path=path)
    if not above.entry_type.is_directory:
        return PathNotFoundError(f"there is nothing at {path}", path=path)
    inside = tree.children(above.node_id)
    link = inside.get(missing[0])
    if link is not None and link.entry_type is EntryType.SYMLINK:
        target = (tree.content(link) or b"").decode()
        return PathNotFoundError(
            f"there is nothing at {path}: {join(*names, missing[0])} is a symbolic link to "
            f"{target}, which leads nowhere",
            path=path,
            hint="make what it leads to, or remove the link",
        )
    return PathNotFoundError(
        f"there is nothing at {path}", path=path, hint=_nearby(list(inside), missing, join(*names))
    )


def _nearby(inside: list[str], missing: list[str], where: str) -> str:
    close = get_close_matches(missing[0], inside, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(join(*parts(where), name) for name in close)}?"
    if not inside:
        return f"{where} is empty"
    shown = ", ".join(inside[:8]) + (f" and {len(inside) - 8} more" if len(inside) > 8 else "")
    return f"{where} has {shown}"


def _no_directory(path: str, chain: list[Row]) -> NoDirectoryError:
    where = join(*(row.name for row in chain))
    return NoDirectoryError(
        f"{path} leads through {where}, which is no directory but a {chain[-1].entry_type}",
        path=path,
        hint=f"{where} is where it ends",
    )
