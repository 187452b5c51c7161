"""Paths and patterns on a command line as the paths of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millpond.base.errors import PathNotFoundError
    from millpond.fs.tree import TreeLike


def chosen(tree: TreeLike, texts: Iterable[str], *, missing_ok: bool = False) -> list[str]:
    """Each path once; patterns are what they match. What lies below another one is left out.

    Where nothing is, that is an error, or with `missing_ok` nothing.
    """
    from millpond.fs.glob import Pattern, expand, is_pattern
    from millpond.fs.paths import join, parts
    from millpond.fs.resolve import try_resolve

    found: list[str] = []
    for text in texts:
        if try_resolve(tree, text, follow=False) is not None:
            found.append(join(*parts(text)))
            continue
        matches = expand(tree, Pattern.parse(text)) if is_pattern(text) else ()
        paths = [match.located.path for match in matches]
        if not paths and not missing_ok:
            raise no_match(tree, text)
        found += paths
    known = set(found)
    tops = [path for path in found if not any(above in known for above in _above(path))]
    return list(dict.fromkeys(tops))


def no_match(tree: TreeLike, text: str) -> PathNotFoundError:
    """The error for a path or a pattern where nothing is; it says what is nearby."""
    from millpond.fs.glob import is_pattern
    from millpond.fs.resolve import not_found

    error = not_found(tree, text)
    if is_pattern(text):
        error.message = f"nothing matches {text}"
    return error


def _above(path: str) -> list[str]:
    """The directories above a path.

    >>> _above("/a/b/c")
    ['/a', '/a/b']
    """
    names = path.split("/")
    return ["/".join(names[:depth]) for depth in range(2, len(names))]
