"""Running the cases: both contenders by turns, digests compared, ratios held to targets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bench.kernel import on_spark, tables
from bench.kernel.cases import ADDS, CASES, FLAT, ROWS, size_of, table_of
from bench.kernel.contenders import CONTENDERS, PEERS
from bench.measure import Job, Measurement, measure
from bench.result import Goal, Report, Result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bench.kernel.case import Case
    from bench.options import Options

ROUNDS: Final = 3
"""Processes of each contender; they take turns."""

SECONDS: Final = 0.3
"""How long short work is repeated in one process."""


def run(options: Options, *, progress: Callable[[str], None]) -> Report:
    """Measure what was asked for."""
    rounds = options.repeat or ROUNDS
    results: list[Result] = []
    notes: list[str] = []
    for case in CASES:
        if not options.wants(case.name):
            continue
        progress(f"{case.name}: the table {case.table}")
        path = table_of(case, options)
        if path is None:
            notes.append(f"left out: {case.name}; give its archive with --log FILE")
        else:
            results += _measured(case, path, options=options, rounds=rounds, progress=progress)
    for name in on_spark.wanted(options):
        case_ = on_spark.CASES[name]
        progress(f"{name}: {on_spark.OURS} and {case_.peer} in turns")
        path = tables.table(case_.table, options.rows or ROWS, directory=options.data)
        results += on_spark.measured(name, path)
    adds, rows = options.adds or ADDS, options.rows or ROWS
    notes.append(f"{adds:,} adds, {rows:,} rows, best of {rounds} processes by turns")
    found = Report("kernel", tuple(results), goals=(), notes=tuple(notes))
    ratios = (*_ratio_goals(found), *on_spark.goals(results))
    return replace(found, goals=(*ratios, *_memory_goals(found)))


def _measured(
    case: Case, path: Path, *, options: Options, rounds: int, progress: Callable[[str], None]
) -> list[Result]:
    names = [name for name in CONTENDERS if options.wants_contender(name)]
    runs: dict[str, list[Measurement]] = {name: [] for name in names}
    arguments = {"action": case.action, "path": str(path), "size": size_of(options)}
    for number in range(rounds):
        for name in names:
            progress(f"{case.name}: {name}, {number + 1} of {rounds}")
            job = Job(f"bench.kernel.contenders:{name}", arguments, repeat=1, seconds=SECONDS)
            runs[name].append(measure(job))
    best = {name: _best(found) for name, found in runs.items()}
    return [_result(case, name, _checked(found, best)) for name, found in best.items()]


def _best(runs: list[Measurement]) -> Measurement:
    """The run that took the least CPU time; one that failed counts above all."""
    failed = [found for found in runs if found.cpu is None]
    return failed[0] if failed else min(runs, key=lambda found: found.cpu or 0.0)


def _checked(found: Measurement, best: dict[str, Measurement]) -> Measurement:
    """The measurement, or an error where its result is not the peer's."""
    peer = next((best[name] for name in PEERS.values() if name in best), None)
    if found.digest is None or peer is None or peer.digest is None:
        return found
    wrong = found.digest.difference(peer.digest, ordered=False)
    return found if wrong is None else Measurement(error=f"other rows: {wrong}")


def _result(case: Case, contender: str, found: Measurement) -> Result:
    return Result(
        work=case.name,
        contender=contender,
        cpu=found.cpu,
        wall=found.wall,
        peak_mb=found.peak_mb,
        rows=None if found.digest is None else found.digest.rows,
        peer=PEERS.get(contender),
        error=found.error,
    )


def _ratio_goals(report: Report) -> tuple[Goal, ...]:
    limits = {case.name: case.limit for case in CASES}
    measured = {(result.work, result.contender) for result in report.results}
    return tuple(
        Goal(f"{result.contender} on {result.work}", report.ratio(result), limits[result.work])
        for result in report.results
        if result.work in limits and (result.work, result.peer) in measured
    )


def _memory_goals(report: Report) -> tuple[Goal, ...]:
    small, large, limit = FLAT
    peaks = {r.work: r.peak_mb for r in report.results if r.contender in PEERS}
    if small not in peaks or large not in peaks:
        return ()
    less, more = peaks[small], peaks[large]
    ratio = None if less is None or more is None else more / less
    return (Goal(f"memory of {large} over {small}", ratio, limit),)
