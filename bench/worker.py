"""The process in which work is done and measured; `measure.py` starts it and says why so."""

from __future__ import annotations

import gc
import json
import math
import os
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from bench.processes import cpu_seconds, peak_megabytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.measure import Work

MOST_RUNS: Final = 20
FEWEST_WARMUPS, MOST_WARMUPS = 4, 12
WARMING_SECONDS: Final = 30
FEWEST_ROUNDS: Final = 6
TURN_SECONDS: Final = 75


def main(way: str, what: str, answer: str) -> int:
    """Do the work and write what was found; a failure is an answer too."""
    try:
        found = WAYS[way](json.loads(what))
    except Exception as error:  # noqa: BLE001 - whatever a contender raises goes into the report
        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {error}"}
    Path(answer).write_text(json.dumps(found), encoding="utf-8")
    return 1 if "error" in found else 0


def best(job: dict[str, Any]) -> dict[str, Any]:
    """Prepare, warm up, run, and keep the run that took the least CPU time."""
    work = _prepared(job)
    work.run()
    cpu, wall = min(_runs(work, job["repeat"], job["seconds"]))
    peak = peak_megabytes(os.getpid())
    return {"cpu": cpu, "wall": wall, "peak_mb": peak, "digest": work.digest().to_dict()}


def in_turns(pair: dict[str, Any]) -> dict[str, Any]:
    """Two pieces of work by turns, each first in every other round."""
    one, other = (_prepared(job) for job in pair["jobs"])
    begin = time.perf_counter()
    for number in range(MOST_WARMUPS):
        if number >= FEWEST_WARMUPS and time.perf_counter() - begin > WARMING_SECONDS:
            break
        one.run()
        other.run()
    rounds = list(_rounds(one, other, pair["rounds"]))
    ratios = sorted(mine[0] / peers[0] for mine, peers in rounds)
    low, high = median_interval(ratios)
    figures = [list(zip(*runs, strict=True)) for runs in zip(*rounds, strict=True)]
    return {
        "cpu": [median(cpu) for cpu, _ in figures],
        "wall": [median(wall) for _, wall in figures],
        "ratio": median(ratios),
        "low": low,
        "high": high,
    }


def median_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Where the true median lies with 95 % confidence, whatever the distribution.

    >>> median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0])
    (3.0, 10.0)
    """
    count = len(ordered)
    skipped = max(0, math.floor((count - 1.96 * math.sqrt(count)) / 2))
    return ordered[skipped], ordered[count - 1 - skipped]


def _rounds(
    one: Work, other: Work, most: int
) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    begin = time.perf_counter()
    for number in range(most):
        if number >= FEWEST_ROUNDS and time.perf_counter() - begin > TURN_SECONDS:
            return
        if number % 2:
            theirs, mine = _timed(other), _timed(one)
        else:
            mine, theirs = _timed(one), _timed(other)
        yield mine, theirs


def _runs(work: Work, least: int, seconds: float) -> Iterator[tuple[float, float]]:
    begin = time.perf_counter()
    for number in range(max(least, MOST_RUNS)):
        if number >= least and time.perf_counter() - begin > seconds:
            return
        yield _timed(work)


def _timed(work: Work) -> tuple[float, float]:
    gc.collect()
    cpu, wall = cpu_seconds(os.getpid()), time.perf_counter()
    work.run()
    wall = time.perf_counter() - wall
    return cpu_seconds(os.getpid()) - cpu, wall


def _prepared(job: dict[str, Any]) -> Work:
    module, _, name = job["prepare"].partition(":")
    work: Work = getattr(import_module(module), name)(**job["arguments"])
    return work


WAYS: Final = {"best": best, "turns": in_turns}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
