"""`Input`: one of the paths that a template is about, as the template sees it.

Nothing is read before the template asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from millpond.fs.entry import to_micros
from millpond.fs.paths import parts, split_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millpond.plan.node import Plan
    from millpond.provider.reading import Facts, Match, Reading
    from millpond.provider.rows import Piece, Rows

_ROUNDED: Final = 999
"""Statistics of files are rounded to milliseconds, so that times are known within so much."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an input."""

    name: str
    type: str


class Lines:
    """Rows as dicts, read anew whenever somebody goes through them."""

    def __init__(self, reading: Reading, plan: Plan) -> None:
        self._reading = reading
        self._plan = plan

    def __repr__(self) -> str:
        return "rows"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._reading.run(self._plan):
            yield from batch.to_pylist()


class Input:
    """A path: its captures, its facts, its columns and its rows."""

    def __init__(self, reading: Reading, url: str, match: Match, files: Sequence[str]) -> None:
        self.path = match.path
        self.name = parts(split_version(match.path).path)[-1]
        self.captures = match.captures
        self.kind = str(match.kind)
        self.files = tuple(files)
        """Where its files are after an export, as relative URLs."""
        self._reading = reading
        self._url = url
        self._match = match

    def __repr__(self) -> str:
        return self.path

    @cached_property
    def _facts(self) -> Facts:
        return self._reading.facts(self._url, self._match)

    @cached_property
    def _rows(self) -> Rows:
        return self._reading.rows(self._url, self._match)

    @property
    def size(self) -> int | None:
        """Bytes; None if that is not known before it is computed."""
        return self._facts.size

    @property
    def modified(self) -> datetime | None:
        """When it was written."""
        return self._facts.modified

    @cached_property
    def schema(self) -> list[Column]:
        """The columns."""
        return [Column(field.name, str(field.type)) for field in self._rows.schema]

    def rows(self, limit: int | None = None) -> Lines:
        """The rows, or the first of them."""
        plan = self._rows.plan()
        return Lines(self._reading, plan if limit is None else plan.head(limit))

    @cached_property
    def first_time(self) -> datetime | None:
        """The time of the first row of a series."""
        return self._extreme(is_first=True)

    @cached_property
    def last_time(self) -> datetime | None:
        """The time of the last row of a series."""
        return self._extreme(is_first=False)

    def _extreme(self, *, is_first: bool) -> datetime | None:
        """Looked for in the pieces where it must be; in all, if bounds hide it there."""
        if self._rows.time_column is None:
            return None
        ends = [_end(piece, is_first=is_first) for piece in self._rows.pieces()]
        known = [end for end in ends if end is not None]
        if len(known) == len(ends) and known:
            outermost = min(known) + _ROUNDED
            pieces = zip(self._rows.pieces(), known, strict=True)
            found = self._found(
                self._rows.plan_of([piece for piece, end in pieces if end <= outermost]),
                is_first=is_first,
            )
            others = [end for end in known if end > outermost]
            if found is not None and (not others or _signed(found, is_first) <= min(others)):
                return found
        return self._found(self._rows.plan(), is_first=is_first)

    def _found(self, plan: Plan, *, is_first: bool) -> datetime | None:
        from millpond.plan import aggregates as agg

        time = self._rows.time_column
        assert time is not None
        measure = agg.min(time) if is_first else agg.max(time)
        for batch in self._reading.run(plan.aggregate(time=measure)):
            for row in batch.to_pylist():
                found: datetime | None = row["time"]
                return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)
        return None


def _end(piece: Piece, *, is_first: bool) -> int | None:
    """The end of a piece, such that the smallest one is wanted."""
    if is_first:
        return piece.first
    return None if piece.last is None else -piece.last


def _signed(time: datetime, is_first: bool) -> int:
    return to_micros(time) if is_first else -to_micros(time)
