"""A report as one aligned table for the terminal, and as Markdown; and which goals are met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.result import Goal, Report, Result

HEADER: Final = ("work", "contender", "rows", "CPU s", "wall s", "peak MB", "× peer")
_TEXT_COLUMNS: Final = 2


def as_text(report: Report) -> str:
    """The report for a terminal."""
    rows = _cells(report)
    widths = [max(len(row[i]) for row in (HEADER, *rows)) for i in range(len(HEADER))]
    lines = [_aligned(HEADER, widths), "  ".join("-" * width for width in widths)]
    lines += [_aligned(row, widths) for row in rows]
    return "\n".join([f"[{report.suite}]", *lines, "", *_ending(report)])


def as_markdown(report: Report) -> str:
    """The report for a document."""
    rule = ["---" if i < _TEXT_COLUMNS else "---:" for i in range(len(HEADER))]
    table = [f"| {' | '.join(row)} |" for row in (HEADER, rule, *_cells(report))]
    return "\n".join([f"## {report.suite}", "", *table, "", *(f"- {x}" for x in _ending(report))])


def _cells(report: Report) -> list[tuple[str, ...]]:
    cells = []
    last = ""
    for result in report.results:
        cells.append(_row(result, report, work="" if result.work == last else result.work))
        last = result.work
    return cells


def _row(result: Result, report: Report, *, work: str) -> tuple[str, ...]:
    if result.error is not None:
        return (work, result.contender, "failed", "", "", "", "")
    ratio = _ratio(report.ratio(result))
    if result.ratio_range is not None:
        ratio += " ({:.2f}-{:.2f})".format(*result.ratio_range)
    return (
        work,
        result.contender,
        "" if result.rows is None else f"{result.rows:,}",
        _number(result.cpu, ".3f"),
        _number(result.wall, ".3f"),
        _number(result.peak_mb, ".0f"),
        ratio,
    )


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _ratio(value: float | None) -> str:
    """Two places, but three digits of what is far below one."""
    return _number(value, ".2f" if value is None or value >= 0.1 else ".3g")


def _aligned(row: Sequence[str], widths: Iterable[int]) -> str:
    cells = [
        text.ljust(width) if i < _TEXT_COLUMNS else text.rjust(width)
        for i, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _ending(report: Report) -> list[str]:
    failed = [r for r in report.results if r.error is not None]
    missed = [goal for goal in report.goals if not goal.is_met]
    lines = [f"failed: {r.work}, {r.contender}: {r.error}" for r in failed]
    if report.goals:
        lines.append(f"targets: {len(report.goals) - len(missed)} of {len(report.goals)} met")
    lines += [f"missed: {_shown(goal)}" for goal in missed]
    return [*lines, *report.notes]


def _shown(goal: Goal) -> str:
    actual = "no figure" if goal.actual is None else f"{_ratio(goal.actual)}{goal.unit}"
    doubt = "" if goal.is_certain else " (within the noise)"
    return f"{goal.text}: {actual}, at most {goal.limit:g}{goal.unit}{doubt}"
