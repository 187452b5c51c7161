"""Running the works on pipelines, and holding what they took to the targets; all is wall time."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from bench.measure import ROOT, TIMEOUT_SECONDS
from bench.pipeline import ponds
from bench.result import Goal, Report, Result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bench.options import Options

ROWS: Final = 10_000_000


def run(options: Options, *, progress: Callable[[str], None]) -> Report:
    """Measure what was asked for."""
    directory = options.data.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    goals: list[Goal] = []
    for name, (limit, peer, function) in _works(options.rows or ROWS).items():
        if not options.wants(name):
            continue
        progress(f"pipeline: {name}")
        found = function(directory)
        if "error" in found:
            results.append(Result(name, "pond", error=found["error"]))
            continue
        ratio = found["ours"] / found["peer"] if "peer" in found else None
        results.append(
            Result(name, "pond", wall=found["ours"], rows=found.get("rows"), ratio=ratio, peer=peer)
        )
        if ratio is None:
            goals.append(Goal(f"seconds of {name}", found["ours"], limit, " s"))
        else:
            assert peer is not None
            results.append(Result(name, peer, wall=found["peer"]))
            goals.append(Goal(f"{name} over {peer}", ratio, limit))
    notes = ("wall time, medians; rows are those read after the append, logs included",)
    return Report("pipeline", tuple(results), tuple(goals), notes)


def _works(
    rows: int,
) -> dict[str, tuple[float, str | None, Callable[[Path], dict[str, Any]]]]:
    """Name, limit, what it is compared with, and how."""

    def append(engine: str) -> Callable[[Path], dict[str, Any]]:
        return lambda d: _work("append", place=_series(d), rows=rows, engine=engine)

    def _series(directory: Path) -> str:
        return str(ponds.with_series(directory, rows))

    def spark(work: str) -> Callable[[Path], dict[str, Any]]:
        return lambda d: _work("against_spark", place=_series(d), work=work)

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
        "versions_5000": (
            1.2,
            "the same rows in one file",
            lambda d: _work("versions", place=str(ponds.with_versions(d))),
        ),
    }


def _work(name: str, **arguments: Any) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.pipeline.works", name, json.dumps(arguments)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["nothing was said"]
        return {"error": said[-1]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found
