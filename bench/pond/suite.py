"""Running the works on ponds, and holding what they took to the targets. All times are wall time:
what a transaction costs is mostly waiting for the disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from bench.apart import run_apart
from bench.pond import ponds
from bench.result import Goal, Report, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.options import Options

LARGE: Final = 2 << 30
LISTINGS: Final = 15


def run(options: Options, *, progress: Callable[[str], None]) -> Report:
    """Measure what was asked for."""
    directory = options.data.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    goals: list[Goal] = []
    for name, measured in _WORKS.items():
        if not options.wants(name):
            continue
        progress(f"pond: {name}")
        limit, peer, function = measured
        found = function(directory)
        if "error" in found:
            results.append(Result(name, "pond", error=found["error"]))
            continue
        ratio = found["ours"] / found["peer"] if "peer" in found else None
        results.append(
            Result(name, "pond", wall=found["ours"], peak_mb=found.get("peak_mb"), ratio=ratio,
                   peer=peer)
        )  # fmt: skip
        if "peer" in found and peer is not None:
            results.append(Result(name, peer, wall=found["peer"]))
            goals.append(Goal(f"{name} over {peer}", ratio, limit))
        else:
            goals.append(Goal(f"memory of {name}", found["peak_mb"], limit, " MB"))
    notes = ("wall time, medians of runs by turns",)
    return Report("pond", tuple(results), tuple(goals), notes)


_work = partial(run_apart, "bench.pond.works")


def _list(directory: Path) -> dict[str, Any]:
    """`pond list` of many nodes, and an import of pyarrow, by turns."""
    pond = ponds.with_nodes(directory)
    command = [str(Path(sys.executable).with_name("pond")), "--pond", str(pond), "list"]
    peer = [sys.executable, "-c", "import pyarrow"]
    # Installed packages have their bytecode; the first, which is not counted, writes ours.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    seconds: dict[str, list[float]] = {"ours": [], "peer": []}
    for number in range(-1, LISTINGS):
        for name, each in (("ours", command), ("peer", peer)):
            begin = time.perf_counter()
            done = subprocess.run(
                each, capture_output=True, text=True, check=False, env=environment
            )
            if done.returncode:
                return {"error": done.stderr.strip()}
            if number >= 0:
                seconds[name].append(time.perf_counter() - begin)
            if name == "ours" and done.stdout.count("\n") < ponds.NODES:
                return {"error": f"only {done.stdout.count(chr(10))} lines"}
    return {name: median(found) for name, found in seconds.items()}


def _open_unmaintained(directory: Path) -> dict[str, Any]:
    pond = ponds.with_transactions(directory)
    kept = ponds.maintained(pond, directory=directory)
    return _work("open_pond", pond=str(pond), other=str(kept))


def _open_many(directory: Path) -> dict[str, Any]:
    pond, small = ponds.with_transactions(directory), ponds.with_transactions(directory, 100)
    return _work("open_pond", pond=str(pond), other=str(small))


def _look_up(directory: Path) -> dict[str, Any]:
    large, small = ponds.deep(directory, 10_000), ponds.deep(directory, 0)
    return _work("look_up", pond=str(large), other=str(small), path=ponds.deep_path())


_WORKS: Final[dict[str, tuple[float, str | None, Callable[[Path], dict[str, Any]]]]] = {
    "list_10k": (1.5, "import pyarrow", _list),
    "write_small": (2.0, "deltalake append", lambda d: _work("write_small", directory=str(d))),
    "append_50_series": (
        1.0,
        "50 deltalake appends",
        lambda d: _work("append_series", directory=str(d)),
    ),
    "open_10k_unmaintained": (2.0, "after maintenance", _open_unmaintained),
    "open_10k": (2.0, "with 100 transactions", _open_many),
    "look_up_depth_10": (1.2, "in an empty pond", _look_up),
    "copy_2gb": (200, None, lambda d: _work("copy_large", directory=str(d), size=LARGE)),
}
"""Name, limit, what it is compared with, and how."""
