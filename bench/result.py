"""What a suite of measurements gives: results, the goals they are held against, and a report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """What one contender needed for one piece of work, at its best of several runs.

    `peer` names the contender of the same work that this one is compared with. A contender that was
    measured in turns with its peer has medians, and a `ratio` with the range it lies in. A
    contender that failed has an `error` and no figures.
    """

    work: str
    contender: str
    cpu: float | None = None
    wall: float | None = None
    peak_mb: float | None = None
    rows: int | None = None
    peer: str | None = None
    ratio: float | None = None
    ratio_range: tuple[float, float] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure and the most that it may be; a figure that could not be taken is a missed goal."""

    text: str
    actual: float | None
    limit: float
    unit: str = "×"
    range: tuple[float, float] | None = None

    @property
    def is_certain(self) -> bool:
        """Whether the limit lies outside the range that the figure lies in."""
        return self.range is None or not self.range[0] <= self.limit < self.range[1]

    @property
    def is_met(self) -> bool:
        """Whether the figure is there and small enough."""
        return self.actual is not None and self.actual <= self.limit


@dataclass(frozen=True, slots=True)
class Report:
    """A suite's results and goals; `notes` say how to read them."""

    suite: str
    results: tuple[Result, ...]
    goals: tuple[Goal, ...]
    notes: tuple[str, ...] = ()

    def ratio(self, result: Result) -> float | None:
        """CPU seconds as a multiple of the peer's on the same work."""
        if result.ratio is not None:
            return result.ratio
        for other in self.results:
            if (other.work, other.contender) == (result.work, result.peer):
                if result.cpu is None or not other.cpu:
                    return None
                return result.cpu / other.cpu
        return None

    @property
    def has_errors(self) -> bool:
        """Whether a contender failed."""
        return any(result.error for result in self.results)
