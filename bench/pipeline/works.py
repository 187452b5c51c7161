"""What is measured, each in a process of its own: `python -m bench.pipeline.works NAME JSON`."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.processes import forget_peaks, peak_megabytes

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 3
RESOLUTIONS = ("1m", "5m", "1h", "6h", "1d")
WIDTHS = {"1m": 60, "5m": 300, "1h": 3600, "6h": 21600, "1d": 86400}


def append(place: str, rows: int, engine: str) -> dict[str, Any]:
    """Reducing a series to five resolutions, and once more after an append of one percent."""
    import millpond as mp
    from bench.pipeline import ponds

    firsts, laters, read, peaks = [], [], [], []
    _start(engine)
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=Path(place).parent) as directory:
            copy = Path(directory) / "pond"
            shutil.copytree(place, copy)
            pond = mp.open(copy)
            _make(pond, "/r", "temporal-reduce", _reduction("/s0"))
            firsts.append(_timed(_read_all, pond))
            with pond.write() as tx:
                tx.append_series("/s0", ponds.rows(rows, rows // 100, 77))
                tx.commit()
            forget_peaks(os.getpid())
            with mp.collect_stats() as seen:
                laters.append(_timed(_read_all, pond))
            read.append(seen.rows_decoded)
            peaks.append(peak_megabytes(os.getpid()))
    found = {"ours": median(laters), "peer": median(firsts), "rows": max(read)}
    return {**found, "peaks": {"ours": max(peaks)}}


def against_spark(place: str, work: str, rounds: int) -> dict[str, Any]:
    """A computed path for the first time, and what a person would write in PySpark, by turns.

    Ours is measured by the engine that is chosen by itself, and on Spark.
    """
    import millpond as mp

    session = _start("spark")
    node, hand = _WORKS[work]
    seconds: dict[str, list[float]] = {"ours": [], "on_spark": [], "peer": []}
    peaks: dict[str, float] = {}
    for number in range(-1, rounds):
        with tempfile.TemporaryDirectory(dir=Path(place).parent) as directory:
            copy = Path(directory) / "pond"
            shutil.copytree(place, copy)
            took = {}
            for name, engine in (("ours", "auto"), ("on_spark", "spark")):
                os.environ["MILLPOND_ENGINE"] = engine
                shutil.rmtree(copy / "cache", ignore_errors=True)
                pond = mp.open(copy)
                if name == "ours":
                    _make(pond, "/r", *node)
                forget_peaks(os.getpid())
                took[name] = _timed(_read_all, pond)
                # The JVM waits while ours runs without it.
                peaks[name] = peak_megabytes(os.getpid(), alone=name == "ours")
            files = {n: _files(pond, n) for n in ("/s0", "/s1", "/s2", "/s3", "/s4", "/long")}
            forget_peaks(os.getpid())
            took["peer"] = _timed(hand, session, files, f"{directory}/out")
            peaks["peer"] = peak_megabytes(os.getpid())
            for name, each in took.items():
                if number >= 0:
                    seconds[name].append(each)
    return {**{name: median(found) for name, found in seconds.items()}, "peaks": peaks}


def plan_files(place: str) -> dict[str, Any]:
    """Planning a union of a thousand series."""
    import millpond as mp

    pond = mp.open(place)
    _make(pond, "/j", "timeseries-join", {"inputs": [{"pattern": "series:///f*"}]})
    took = _timed(lambda: pond.read().derivation.rows("/j").pieces())
    return {"ours": took, "peaks": {"ours": peak_megabytes(os.getpid())}}


def versions(place: str) -> dict[str, Any]:
    """A query over a series of many versions after maintenance, and over its rows in one file."""
    import millpond as mp

    pond = mp.open(place)

    def total(path: str) -> None:
        plan = pond.read()[path].plan().aggregate(n=mp.agg.sum("flow"))
        assert plan.to_pylist(engine="arrow")

    pairs = [(_timed(total, "/many"), _timed(total, "/one")) for _ in range(9)]
    return {"ours": median(p[0] for p in pairs[1:]), "peer": median(p[1] for p in pairs[1:])}


_QUERY = "SELECT count(*) AS n, max(level) AS top FROM source"
_BARE = """
import sys
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
session.read.parquet(*sys.argv[2:]).createOrReplaceTempView("source")
print(session.sql(sys.argv[1]).collect())
"""


def cold(place: str) -> dict[str, Any]:
    """A query by the command without an engine that is warm, and by a bare session of Spark."""
    import millpond as mp

    files = _files(mp.open(place), "/s0")
    ours = [*_pond(place), "cat", "/s0", "--sql", _QUERY]
    bare = [sys.executable, "-c", _BARE, _QUERY, *files]
    with tempfile.TemporaryDirectory() as state:
        pairs = [(_called(ours, state), _called(bare, state)) for _ in range(ROUNDS + 1)]
    return {"ours": median(p[0] for p in pairs[1:]), "peer": median(p[1] for p in pairs[1:])}


def warm(place: str) -> dict[str, Any]:
    """A query by the command while an engine is warm."""
    pond = _pond(place)
    query = [*pond, "cat", "/s0", "--sql", _QUERY]
    with tempfile.TemporaryDirectory() as state:
        _called([*pond, "engine", "start"], state)
        try:
            return {"ours": median([_called(query, state) for _ in range(5)][1:])}
        finally:
            _called([*pond, "engine", "stop"], state)


def _pond(place: str) -> list[str]:
    return [str(Path(sys.executable).with_name("pond")), "--pond", place]


def _called(command: list[str], state: str) -> float:
    """Seconds of a command, whose engine is none of the user's own."""
    import subprocess

    environment = {**os.environ, "XDG_STATE_HOME": state}
    return _timed(lambda: subprocess.run(command, env=environment, check=True, capture_output=True))


# What a person would write


def _hand_reduce(session: Any, files: dict[str, list[str]], out: str) -> None:
    from pyspark.sql import functions as f

    source = session.read.parquet(*files["/s0"])
    for name, width in WIDTHS.items():
        bucket = f.timestamp_seconds(f.floor(f.unix_seconds("timestamp") / width) * width)
        found = source.groupBy(bucket.alias("timestamp")).agg(
            f.avg("level"), f.max("flow"), f.count("level")
        )
        found.write.parquet(f"{out}/{name}")


def _hand_join(session: Any, files: dict[str, list[str]], out: str) -> None:
    from functools import reduce

    from pyspark.sql import functions as f

    parts = [
        session.read.parquet(*files[f"/s{n}"]).select(
            "timestamp", f.col("level").alias(f"S{n}_level"), f.col("flow").alias(f"S{n}_flow")
        )
        for n in range(5)
    ]
    united = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    columns = [c for c in united.columns if c != "timestamp"]
    united.groupBy("timestamp").agg(*(f.max(c).alias(c) for c in columns)).write.parquet(out)


def _hand_pivot(session: Any, files: dict[str, list[str]], out: str) -> None:
    from pyspark.sql import functions as f

    source = session.read.parquet(*files["/long"])
    values = [row[0] for row in source.select("sensor").distinct().collect()]
    source.groupBy("timestamp").pivot("sensor", values).agg(f.max("level")).write.parquet(out)


def _reduction(path: str) -> dict[str, Any]:
    return {
        "in_pattern": path,
        "out_pattern": "s",
        "resolutions": list(RESOLUTIONS),
        "aggregations": [
            {"type": "avg", "columns": ["level"]},
            {"type": "max", "columns": ["flow"]},
            {"type": "count", "columns": ["level"]},
        ],
    }


_WORKS: dict[str, tuple[tuple[str, dict[str, Any]], Callable[..., None]]] = {
    "reduce": (("temporal-reduce", _reduction("/s0")), _hand_reduce),
    "join": (
        (
            "timeseries-join",
            {"inputs": [{"pattern": f"/s{n}", "scope": f"S{n}"} for n in range(5)]},
        ),
        _hand_join,
    ),
    "pivot": (
        (
            "timeseries-pivot",
            {"in_pattern": "/long", "pivot_column": "sensor", "value_column": "level"},
        ),
        _hand_pivot,
    ),
}


def _start(engine: str) -> Any:
    import os

    os.environ["MILLPOND_ENGINE"] = engine
    if engine != "spark":
        return None
    from millpond.plan.run import engine_named

    spark: Any = engine_named("spark")
    session = spark.session
    session.range(10).count()
    return session


def _make(pond: Any, path: str, factory: str, config: dict[str, Any]) -> None:
    with pond.write() as tx:
        tx.make_factory(path, factory, config)
        tx.commit()


def _read_all(pond: Any) -> None:
    """Have everything computed and kept."""
    scope = pond.read()
    paths = [handle.path for handle in scope["/"].glob("r/**/*.series")] or ["/r"]
    for path in paths:
        scope.derivation.rows(path).plan()


def _files(pond: Any, path: str) -> list[str]:
    table = pond.read().delta(path)
    paths = table.files(columns=("path",)).to_arrow().column("path").to_pylist()
    return [f"{table.location}/{name}" for name in paths]


def _timed(run: Callable[..., Any], *given: Any) -> float:
    begin = time.perf_counter()
    run(*given)
    return time.perf_counter() - begin


WORKS: dict[str, Callable[..., dict[str, Any]]] = {
    "append": append,
    "against_spark": against_spark,
    "plan_files": plan_files,
    "cold": cold,
    "warm": warm,
    "versions": versions,
}

if __name__ == "__main__":
    print(json.dumps(WORKS[sys.argv[1]](**json.loads(sys.argv[2]))))
