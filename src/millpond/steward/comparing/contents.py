"""Two files by their bytes: equal, a difference of texts, or where they begin to differ."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING, Final

from millpond.fs.blobs import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.fs.entry import Row
    from millpond.steward.scope import Scope

TEXT_BYTES: Final = 1 << 20
"""Texts up to this size are compared line by line."""


@dataclass(frozen=True, slots=True)
class ContentDiff:
    """How the bytes of two files differ."""

    old_size: int
    new_size: int
    is_same: bool
    lines: tuple[str, ...] | None = None
    """A unified diff, without line ends; None where a file is large or no text."""
    first_difference: int | None = None
    """The position of the first byte that differs, where there are no lines."""


@dataclass(frozen=True, slots=True)
class ByteSide:
    """The bytes of one side."""

    scope: Scope
    name: str
    rows: list[Row]

    @property
    def size(self) -> int:
        """How many there are."""
        return sum(row.size or 0 for row in self.rows)

    @property
    def hashes(self) -> list[str | None]:
        """What they are, without reading them."""
        return [row.blake3 for row in self.rows]

    def chunks(self) -> Iterator[bytes]:
        """The bytes."""
        return self.scope.chunks_of(self.rows, self.name)


@dataclass(frozen=True, slots=True)
class MadeSide:
    """The bytes of one side, which are computed."""

    name: str
    content: bytes

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.content)

    @property
    def hashes(self) -> list[str | None]:
        """What they are."""
        return [digest_of(self.content)]

    def chunks(self) -> Iterator[bytes]:
        """The bytes."""
        return iter((self.content,))


def compare_contents(old: ByteSide | MadeSide, new: ByteSide | MadeSide) -> ContentDiff:
    """Compare the bytes of two sides; equal hashes need no reading."""
    if old.hashes == new.hashes:
        return ContentDiff(old.size, new.size, is_same=True)
    if max(old.size, new.size) <= TEXT_BYTES:
        texts = [_text(b"".join(side.chunks())) for side in (old, new)]
        if texts[0] is not None and texts[1] is not None:
            if texts[0] == texts[1]:
                return ContentDiff(old.size, new.size, is_same=True)
            lines = unified_diff(
                _lines(texts[0]), _lines(texts[1]), old.name, new.name, lineterm=""
            )
            shown = (part for line in lines for part in line.split("\n"))
            return ContentDiff(old.size, new.size, is_same=False, lines=tuple(shown))
    position = _first_difference(old.chunks(), new.chunks())
    return ContentDiff(old.size, new.size, position is None, first_difference=position)


def _text(content: bytes) -> str | None:
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> list[str]:
    r"""The lines of a text; a last one without a line end says so.

    >>> _lines("a\nb")
    ['a', 'b\n\\ No newline at end of file']
    """
    *found, last = text.split("\n")
    return [*found, f"{last}\n\\ No newline at end of file"] if last else found


def _first_difference(one: Iterator[bytes], other: Iterator[bytes]) -> int | None:
    """Where two streams begin to differ; None if they do not."""
    at, left, right = 0, b"", b""
    while True:
        left = left or next(one, b"")
        right = right or next(other, b"")
        count = min(len(left), len(right))
        if not count:
            return None if left == right else at
        if left[:count] != right[:count]:
            pairs = zip(left, right, strict=False)
            return at + next(n for n, (a, b) in enumerate(pairs) if a != b)
        at, left, right = at + count, left[count:], right[count:]
