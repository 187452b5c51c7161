"""All nodes below a directory (`walk`), and what a person means by a path to be listed (`listing`).

Names come in order, a directory before what is in it. Links are entries; who follows them sees what
they lead to under the path of the link, and no directory within itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.base.errors import MillpondError, NoDirectoryError
from millpond.fs.entry import EntryType
from millpond.fs.glob import Match, Pattern, expand, is_pattern
from millpond.fs.paths import child
from millpond.fs.resolve import Located, follow_link, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millpond.fs.tree import TreeLike


def walk(
    tree: TreeLike,
    path: str = "/",
    *,
    follow: bool = False,
    depth: int | None = None,
    failed: Callable[[Located, MillpondError], None] | None = None,
) -> Iterator[Located]:
    """Everything below a directory, depth first; the directory itself is not among it.

    With `depth` it goes only so deep: 1 is what is in the directory. With `follow`, links are what
    they lead to. A link to a directory that lies above it is shown and not entered, and one that
    leads nowhere stays a link. `failed` is told of computed directories that can't be looked into;
    without it, such a directory is an error.
    """
    return _below(tree, _directory(tree, path), follow=follow, depth=depth, failed=failed)


def listing(tree: TreeLike, text: str) -> list[Match]:
    """What a path or a pattern names: `dir` the entry itself, `dir/` and `/` what is in them.

    Each entry comes with what the wildcards stood for; a path has none, so nothing. A path must be
    there; a pattern may match nothing. `dir*/` gives what is in each directory that matches.
    """
    is_inside = text.endswith("/")
    if not is_pattern(text):
        if is_inside:
            return [Match(entry) for entry in entries(tree, _directory(tree, text))]
        return [Match(resolve(tree, text, follow=False))]
    matches = expand(tree, Pattern.parse(text), follow=is_inside)
    if not is_inside:
        return list(matches)
    return [
        Match(entry, match.captures)
        for match in matches
        if match.located.entry_type.is_directory
        for entry in entries(tree, match.located)
    ]


def entries(tree: TreeLike, where: Located) -> Iterator[Located]:
    """What is in a directory, by name; links are themselves."""
    for name, row in tree.children(where.node_id).items():
        yield Located(child(where.path, name), (*where.chain, row))


def _below(
    tree: TreeLike,
    start: Located,
    *,
    follow: bool,
    depth: int | None,
    failed: Callable[[Located, MillpondError], None] | None,
) -> Iterator[Located]:
    levels = [entries(tree, start)] if depth != 0 else []
    entered = [start]
    while levels:
        try:
            found = next(levels[-1], None)
        except MillpondError as error:
            if failed is None or not entered[-1].entry_type.is_dynamic:
                raise
            failed(entered[-1], error)
            found = None
        if found is None:
            levels.pop()
            entered.pop()
            continue
        if follow and found.entry_type is EntryType.SYMLINK:
            found = follow_link(tree, found) or found
        yield found
        if depth is not None and len(levels) >= depth:
            continue
        if found.entry_type.is_directory and found.node_id not in {e.node_id for e in entered}:
            levels.append(entries(tree, found))
            entered.append(found)


def _directory(tree: TreeLike, path: str) -> Located:
    found = resolve(tree, path)
    if not found.entry_type.is_directory:
        raise NoDirectoryError(
            f"{path} is no directory but a {found.entry_type}",
            path=path,
            hint=f"{path.rstrip('/')} names the entry itself",
        )
    return found
