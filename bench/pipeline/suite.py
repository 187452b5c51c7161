"""Running the works on pipelines, and holding what they took to the targets; all is wall time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from bench.apart import run_apart
from bench.pipeline import ponds
from bench.result import Goal, Report, Result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bench.options import Options

ROWS: Final = 10_000_000
ROUNDS: Final = 3


def run(options: Options, *, progress: Callable[[str], None]) -> Report:
    """Measure what was asked for."""
    directory = options.data.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    goals: list[Goal] = []
    for name, (limit, peer, function) in _works(
        options.rows or ROWS, options.repeat or ROUNDS
    ).items():
        if not options.wants(name):
            continue
        progress(f"pipeline: {name}")
        found = function(directory)
        if "error" in found:
            results.append(Result(name, "pond", error=found["error"]))
            continue
        ratio = found["ours"] / found["peer"] if "peer" in found else None
        peaks = found.get("peaks", {})
        results.append(
            Result(name, "pond", wall=found["ours"], rows=found.get("rows"),
                   peak_mb=peaks.get("ours"), ratio=ratio, peer=peer)
        )  # fmt: skip
        if ratio is None:
            goals.append(Goal(f"seconds of {name}", found["ours"], limit, " s"))
        else:
            assert peer is not None
            if "on_spark" in found:
                ratio = found["on_spark"] / found["peer"]
                results.append(
                    Result(name, "pond on Spark", wall=found["on_spark"],
                           peak_mb=peaks.get("on_spark"), ratio=ratio, peer=peer)
                )  # fmt: skip
                goals.append(Goal(f"{name} on Spark over {peer}", ratio, limit))
                ratio = found["ours"] / found["peer"]
            results.append(Result(name, peer, wall=found["peer"], peak_mb=peaks.get("peer")))
            goals.append(Goal(f"{name} over {peer}", ratio, limit))
    notes = (
        "wall time, medians; rows are those read after the append, logs included",
        "memory is that of Python, and of the JVM where Spark is used, which keeps what it had",
    )
    return Report("pipeline", tuple(results), tuple(goals), notes)


def _works(
    rows: int, rounds: int
) -> dict[str, tuple[float, str | None, Callable[[Path], dict[str, Any]]]]:
    """Name, limit, what it is compared with, and how."""

    def append(engine: str) -> Callable[[Path], dict[str, Any]]:
        return lambda d: _work(
            "append", place=str(ponds.with_one_series(d, rows)), rows=rows, engine=engine
        )

    def _series(directory: Path) -> str:
        return str(ponds.with_series(directory, rows))

    def _small(directory: Path) -> str:
        return str(ponds.with_series(directory, min(rows, 100_000)))

    def spark(work: str) -> Callable[[Path], dict[str, Any]]:
        return lambda d: _work("against_spark", place=_series(d), work=work, rounds=rounds)

    return {
        "append_1_percent": (0.05, "the first time", append("auto")),
        "append_1_percent_on_spark": (0.05, "the first time", append("spark")),
        "reduce": (1.15, "hand-written Spark", spark("reduce")),
        "join_5": (1.15, "hand-written Spark", spark("join")),
        "pivot": (1.15, "hand-written Spark", spark("pivot")),
        "plan_1000_files": (
            2.0,
            None,
            lambda d: _work("plan_files", place=str(ponds.with_files(d))),
        ),
        "cold_query": (1.1, "a bare session", lambda d: _work("cold", place=_small(d))),
        "warm_query": (1.2, None, lambda d: _work("warm", place=_small(d))),
        "versions_5000": (
            1.2,
            "the same rows in one file",
            lambda d: _work("versions", place=str(ponds.with_versions(d))),
        ),
    }


_work = partial(run_apart, "bench.pipeline.works")
