"""Counts of a campaign by class, the failures among them, and the table that is printed last."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Failure:
    """A case with an outcome that must not occur."""

    campaign: str
    case: str
    """Names the case, so that it can be run again."""
    outcome: str
    detail: str

    def __str__(self) -> str:
        return f"{self.campaign} {self.case}: {self.outcome}: {self.detail}"


@dataclass(slots=True)
class Tally:
    """The outcomes of one campaign, row by row (a kind of input, of file, of operation)."""

    campaign: str
    allowed: tuple[str, ...]
    """Outcomes that may occur, in the order of the table's columns."""
    forbidden: tuple[str, ...]
    """Outcomes that are failures; they have columns of their own, which should be all zeros."""
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def add(self, row: str, case: str, outcome: str, detail: str = "") -> None:
        """Count one case."""
        if outcome not in self.allowed and outcome not in self.forbidden:
            raise ValueError(f"unknown outcome {outcome!r} of {self.campaign}")
        self.counts.setdefault(row, Counter())[outcome] += 1
        if outcome in self.forbidden:
            self.failures.append(Failure(self.campaign, f"{row} {case}", outcome, detail))

    def include(self, other: Tally) -> None:
        """Add the counts of another run of the same campaign."""
        for row, counter in other.counts.items():
            self.counts.setdefault(row, Counter()).update(counter)
        self.failures += other.failures

    @property
    def total(self) -> int:
        """The number of cases."""
        return sum(sum(counter.values()) for counter in self.counts.values())

    def count(self, outcome: str) -> int:
        """The number of cases with this outcome."""
        return sum(counter[outcome] for counter in self.counts.values())

    def table(self) -> str:
        """The counts as a Markdown table, with a line for the sum."""
        outcomes = [*self.allowed, *self.forbidden]
        header = [self.campaign, "cases", *outcomes]
        rows = [
            [name, sum(counter.values()), *(counter[outcome] for outcome in outcomes)]
            for name, counter in self.counts.items()
        ]
        rows.append(["all", self.total, *(self.count(outcome) for outcome in outcomes)])
        return "\n".join(_aligned([header, *rows]))


def _aligned(rows: Sequence[Sequence[object]]) -> Iterable[str]:
    texts = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[at]) for row in texts) for at in range(len(texts[0]))]
    for number, row in enumerate(texts):
        first, *rest = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]
        yield f"| {' | '.join(cells)} |"
        if number == 0:
            yield f"|{'|'.join('-' * (width + 2) for width in widths)}|"
