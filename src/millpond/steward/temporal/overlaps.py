"""Where series overlap: which version, or which series, the rows of a time come from.

Time is cut into *runs*: stretches in which all rows come from one source. Sources whose bounds do
not meet are told apart by these bounds alone; of others the times are read, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

from millpond.base.errors import BudgetExceededError
from millpond.steward.scope import as_time
from millpond.steward.temporal.bounds import series_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    import numpy as np
    import numpy.typing as npt

    from millpond.fs.entry import Row
    from millpond.steward.scope import Scope

    Times = npt.NDArray[np.int64]

MOST_ROWS: Final = 50_000_000
"""So many times of sources that overlap are held at once."""
MOST_RUNS: Final = 50
"""Sources that take turns more often than this are told as one mixed run."""

By = Literal["version", "path"]


@dataclass(frozen=True, slots=True)
class Source:
    """Rows that came together: a version of a series, or a whole one; its bounds, in time."""

    path: str
    version: int | None
    first: int
    last: int
    time_column: str

    @property
    def name(self) -> str:
        """What reads it."""
        return self.path if self.version is None else f"{self.path}@v{self.version}"


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of time whose rows come from one source; or from several that take turns."""

    sources: tuple[str, ...]
    first: datetime
    last: datetime
    rows: int | None
    """Counted where sources overlap."""
    switches: int = 0
    """How often the sources take turns."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """A stretch of time that two sources share."""

    one: str
    other: str
    first: datetime
    last: datetime
    rows_of_one: int
    rows_of_other: int
    same_times: int
    """How many times both have."""


@dataclass(frozen=True, slots=True)
class Overlaps:
    """What was found, by time."""

    sources: tuple[str, ...]
    runs: tuple[Run, ...]
    overlaps: tuple[Overlap, ...]


def detect_overlaps(scope: Scope, paths: Sequence[str], *, by: By = "version") -> Overlaps:
    """Find the runs and overlaps of series, all taken together; rows beyond bounds do not count."""
    sources = [s for path in series_at(scope, paths) for s in _sources(scope, path, by)]
    sources.sort(key=lambda source: (source.first, source.last, source.name))
    runs: list[Run] = []
    overlaps: list[Overlap] = []
    for group in _groups(sources):
        if len(group) == 1:
            first, last = as_time(group[0].first), as_time(group[0].last)
            runs.append(Run((group[0].name,), first, last, None))
            continue
        times = _times(scope, group)
        runs += _runs(group, times)
        overlaps += _overlaps(group, times)
    return Overlaps(tuple(s.name for s in sources), tuple(runs), tuple(overlaps))


def _sources(scope: Scope, path: str, by: By) -> Iterator[Source]:
    latest = scope.row(path)
    rows = [row for row in scope.versions(path) if row.version >= latest.begins_with]
    found = [source for row in rows if (source := _source(path, row, latest)) is not None]
    if by == "version":
        yield from found
    elif found:
        first, last = min(s.first for s in found), max(s.last for s in found)
        yield replace(found[0], version=None, first=first, last=last)


def _source(path: str, row: Row, latest: Row) -> Source | None:
    """A version, as far as the bounds of its series let it count; None if nothing of it does."""
    if row.min_event_time is None or row.max_event_time is None or row.time_column is None:
        return None
    first, last = row.min_event_time, row.max_event_time
    first = first if latest.min_override is None else max(first, latest.min_override)
    last = last if latest.max_override is None else min(last, latest.max_override)
    return Source(path, row.version, first, last, row.time_column) if first <= last else None


def _groups(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """Sources that meet, directly or by way of others."""
    group: list[Source] = []
    end = 0
    for source in sources:
        if group and source.first > end:
            yield group
            group = []
        end = source.last if not group else max(end, source.last)
        group.append(source)
    if group:
        yield group


def _times(scope: Scope, group: Sequence[Source]) -> list[Times]:
    """The times of each source, in order."""
    import numpy as np

    found: list[Times] = []
    count = 0
    for source in group:
        parts: list[Any] = []
        plan = scope.plan(source.name, columns=[source.time_column])
        for batch in plan.execute(engine=scope.pond.engine):
            column = batch.column(0).drop_null().view("int64")
            parts.append(column.to_numpy(zero_copy_only=False))
            count += len(column)
            if count > MOST_ROWS:
                raise BudgetExceededError(
                    "the rows of series that overlap",
                    required=count,
                    limit=MOST_ROWS,
                    suggestion="name fewer series, or set bounds first",
                )
        found.append(np.sort(np.concatenate(parts)) if parts else np.array([], np.int64))
    return found


def _runs(group: Sequence[Source], times: Sequence[Times]) -> list[Run]:
    import numpy as np

    moments = np.concatenate(times)
    owners = np.repeat(np.arange(len(group)), [len(each) for each in times])
    order = np.lexsort((owners, moments))
    moments, owners = moments[order], owners[order]
    if not len(moments):
        return []
    edges = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(owners)]
    if len(edges) - 1 > MOST_RUNS:
        edges = [0, edges[1], edges[-2], len(owners)]  # what is before, the mixture, what is behind
    found = []
    for start, end in pairwise(edges):
        inside = np.unique(owners[start:end]).tolist()
        names = tuple(group[at].name for at in inside)
        switches = int(np.count_nonzero(np.diff(owners[start:end])))
        first, last = as_time(int(moments[start])), as_time(int(moments[end - 1]))
        found.append(Run(names, first, last, end - start, switches))
    return found


def _overlaps(group: Sequence[Source], times: Sequence[Times]) -> Iterator[Overlap]:
    for at, one in enumerate(group):
        for other_at in range(at + 1, len(group)):
            other = group[other_at]
            if other.first > one.last:
                break  # they are sorted by where they begin
            first, last = other.first, min(one.last, other.last)
            mine = _between(times[at], first, last)
            theirs = _between(times[other_at], first, last)
            yield Overlap(
                one.name,
                other.name,
                as_time(first),
                as_time(last),
                len(mine),
                len(theirs),
                _in_both(mine, theirs),
            )


def _between(times: Times, first: int, last: int) -> Times:
    import numpy as np

    return times[np.searchsorted(times, first) : np.searchsorted(times, last, side="right")]


def _in_both(one: Times, other: Times) -> int:
    import numpy as np

    return len(np.intersect1d(one, other))
