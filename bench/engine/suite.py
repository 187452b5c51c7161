"""Running the cases: every contender on every case, digests compared, ratios held to targets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bench.engine.cases import CASES
from bench.engine.contenders import CONTENDERS, ON_A_JVM, PEERS
from bench.engine.generate import events
from bench.measure import Comparison, Job, Measurement, compare, measure
from bench.result import Goal, Report, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.digest import Digest
    from bench.engine.case import Case
    from bench.options import Options

ROWS: Final = 2_000_000
REPEAT: Final = 3
ROUNDS: Final = 100
"""Runs of each of two contenders that take turns."""


def run(options: Options, *, progress: Callable[[str], None]) -> Report:
    """Measure what was asked for."""
    rows = options.rows or ROWS
    progress(f"events: {rows:,} rows")
    path = str(events(rows, directory=options.data))
    repeat = options.repeat or REPEAT
    results: list[Result] = []
    for case in CASES:
        if options.wants(case.name):
            results += _measured(case, path, options=options, repeat=repeat, progress=progress)
    peers = " and ".join(f"{name} to {peer}" for name, peer in PEERS.items())
    note = f"{rows:,} events, best of {repeat}; × peer: CPU seconds, {peers}"
    found = Report("engine", tuple(results), goals=(), notes=(note,))
    return replace(found, goals=_goals(found))


def _measured(
    case: Case, path: str, *, options: Options, repeat: int, progress: Callable[[str], None]
) -> list[Result]:
    results: dict[str, Result] = {}
    first: Digest | None = None
    for name in CONTENDERS:
        if not options.wants_contender(name):
            continue
        progress(f"{case.name}: {name}")
        found = measure(_job(case, name, path, repeat=repeat))
        if found.digest is not None:
            first = first or found.digest
            wrong = found.digest.difference(first, ordered=case.order == "sorted")
            found = found if wrong is None else Measurement(error=f"other rows: {wrong}")
        results[name] = _result(case, name, found)
    if all(name in results and results[name].error is None for name in ON_A_JVM):
        progress(f"{case.name}: {' and '.join(ON_A_JVM)} in turns")
        jobs = (_job(case, name, path, repeat=repeat) for name in ON_A_JVM)
        results |= _in_turns(results, compare(*jobs, rounds=max(ROUNDS, repeat)))
    return list(results.values())


def _job(case: Case, contender: str, path: str, *, repeat: int) -> Job:
    arguments = {"case": case.name, "path": path}
    return Job(f"bench.engine.contenders:{contender}", arguments, repeat)


def _in_turns(results: dict[str, Result], found: Comparison) -> dict[str, Result]:
    """The results of both Spark contenders with the figures of the process they shared."""
    ours, peer = (results[name] for name in ON_A_JVM)
    if found.ratio is None or found.low is None or found.high is None:
        return {ours.contender: replace(ours, error=found.error)}
    cpu, wall = found.cpu, found.wall
    between = (found.low, found.high)
    return {
        ours.contender: replace(
            ours, cpu=cpu[0], wall=wall[0], ratio=found.ratio, ratio_range=between
        ),
        peer.contender: replace(peer, cpu=cpu[1], wall=wall[1]),
    }


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


def _goals(report: Report) -> tuple[Goal, ...]:
    limits = {("arrow", case.name): case.arrow_limit for case in CASES}
    limits |= {("spark", case.name): case.spark_limit for case in CASES}
    measured = {(result.work, result.contender) for result in report.results}
    return tuple(
        Goal(
            f"{result.contender} on {result.work}",
            report.ratio(result),
            limit,
            range=result.ratio_range,
        )
        for result in report.results
        if result.peer is not None and (result.work, result.peer) in measured
        if (limit := limits[result.contender, result.work]) is not None
    )
