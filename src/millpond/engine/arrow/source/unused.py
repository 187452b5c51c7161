"""Contents of small files that were read and not needed, for whoever reads them next.

A log's commits are read twice: for what is said of the table, which few of them hold, and for its
files. What they hold never changes.
"""

from __future__ import annotations


class Unused:
    """Some bytes of contents, by path; each is given once."""

    def __init__(self, most: int = 0) -> None:
        self._held: dict[str, bytes] = {}
        self._room = most

    def keep(self, path: str, content: bytes) -> None:
        """Keep a content, if there is room for it."""
        if len(content) <= self._room and path not in self._held:
            self._room -= len(content)
            self._held[path] = content

    def take(self, path: str, size: int | None) -> bytes | None:
        """The content of a file of this size, if it is there; it is not any more."""
        content = self._held.pop(path, None)
        if content is None:
            return None
        self._room += len(content)
        return content if size in (None, len(content)) else None
