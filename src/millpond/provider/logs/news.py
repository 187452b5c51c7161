"""What is new in the log files of one stream, and what is to be remembered of them.

A stream is an active file and what it was rotated to. What the pond has of each file is an `End`:
how many bytes, and their hash. A file that begins with such bytes goes on behind them, under
whatever name; one that does not is new as a whole. A file that is no more than the beginning of
another one is a copy of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from millpond.provider.logs.files import End, IncompleteError, LogFile, Look, look

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Kind: TypeAlias = Literal["new", "grown", "rotated", "replaced"]


@dataclass(frozen=True, slots=True)
class Known:
    """What the pond has of a stream."""

    ended: frozenset[End] = frozenset()
    """Files that were rotated."""
    open: End | None = None
    """The active file."""
    marks: tuple[list[int], ...] = ()
    """Archived files that need not be read again."""

    @classmethod
    def of(cls, notes: Iterable[dict[str, Any]]) -> Known:
        """Out of what was noted with each version, oldest first."""
        ended: set[End] = set()
        last: dict[str, Any] = {}
        for note in notes:
            ended |= {End(*each) for each in note["ended"]}
            last = note
        is_open = last.get("open") is not None
        return cls(
            frozenset(ended), End(*last["open"]) if is_open else None, tuple(last.get("marks", ()))
        )

    @property
    def ends(self) -> frozenset[End]:
        """All of them."""
        return self.ended if self.open is None else self.ended | {self.open}


@dataclass(frozen=True, slots=True)
class Take:
    """New bytes of a file."""

    look: Look
    kind: Kind

    @property
    def size(self) -> int:
        """How many."""
        return self.look.end.size - self.look.start


@dataclass(frozen=True, slots=True)
class News:
    """What is to be appended, in order, and what to note with it."""

    takes: tuple[Take, ...]
    note: dict[str, Any]
    skipped: dict[str, str] = field(default_factory=dict)
    """Files that could not be read to their end, and why."""


def news(known: Known, archived: Sequence[LogFile], active: LogFile | None) -> News:
    """Look at files, archived ones oldest first, and compare them with what is known."""
    skipped: dict[str, str] = {}
    read = [file for file in archived if file.mark not in known.marks]
    looks = _looks([*read, *([active] if active is not None else [])], known, skipped)
    is_found = any(each.begins_with(known.open) for each in looks)
    takes = tuple(
        Take(each, _kind(each, known, is_found=is_found))
        for each in looks
        if each.end.size > each.start
    )
    rotated = [each for each in looks if not each.file.is_active]
    ended = {each.end for each in rotated} - known.ended
    last = next((each.end for each in looks if each.file.is_active), None)
    if known.open is not None and not is_found:
        ended.add(known.open)  # it may turn up again, as an archived file
    marks = [each.file.mark for each in rotated]
    marks += [file.mark for file in archived if file.mark in known.marks]
    note = {
        "ended": sorted(map(list, ended)),
        "open": None if last is None else list(last),
        "marks": sorted(marks),
    }
    return News(takes, note, skipped)


def _looks(files: Sequence[LogFile], known: Known, skipped: dict[str, str]) -> list[Look]:
    """What is in files; empty ones and copies are left out."""
    sizes, found = {file.size for file in files}, list[Look]()
    for file in files:
        try:
            found.append(look(file, known.ends, sizes))
        except IncompleteError as error:
            skipped[file.path] = str(error)
    found = [each for each in found if each.end.size]
    return [each for at, each in enumerate(found) if not _is_copy(at, found)]


def _is_copy(at: int, looks: Sequence[Look]) -> bool:
    """Whether another file begins with all of this one; of two that are equal the second is."""
    end = looks[at].end
    return any(
        other.begins_with(end) and (other.end.size > end.size or number < at)
        for number, other in enumerate(looks)
        if number != at
    )


def _kind(each: Look, known: Known, *, is_found: bool) -> Kind:
    if each.start == 0:
        is_other = each.file.is_active and known.open is not None and not is_found
        return "replaced" if is_other else "new"
    is_rotated = each.begins_with(known.open) and not each.file.is_active
    return "rotated" if is_rotated else "grown"
