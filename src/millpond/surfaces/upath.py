"""`PondPath`: paths of a pond with the methods of `pathlib`: `UPath("pond:///a", location=...)`."""

from __future__ import annotations

from upath import UPath


class PondPath(UPath):
    """A path of a pond.

    >>> import millpond
    >>> _ = millpond.create("example")
    >>> note = UPath("pond:///notes/a.txt", location="example")
    >>> note.parent.mkdir()
    >>> _ = note.write_text("hello")
    >>> [path.name for path in note.parent.iterdir()], note.read_text()
    (['a.txt'], 'hello')
    """

    __slots__ = ()
