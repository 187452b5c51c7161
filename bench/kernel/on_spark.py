"""Rows of Delta tables on Spark, against `spark.read.parquet` of the same files.

Both take turns in one JVM, and Spark's `noop` writer takes all rows and columns. The peer is told
the schema and the files; ours reads the log every time. Of a table with deletion vectors the peer
gives deleted rows, too: there is no other reading of the same files to compare with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.kernel import tables
from bench.measure import Job, compare
from bench.noop import on_spark
from bench.result import Goal, Result

if TYPE_CHECKING:
    from pathlib import Path

    from bench.measure import Work
    from bench.options import Options

CASES: Final = {f"spark_{name}": name for name in tables.CONTENTS}
LIMIT: Final = 1.05
OURS, PEER = "spark", "spark_raw"
ROUNDS: Final = 20


def spark(path: str) -> Work:
    """Our kernel and engine."""
    from millpond import delta_table
    from millpond.engine.spark.session import spark_session

    session = spark_session()
    return on_spark(lambda: delta_table(path).scan().to_spark(session))


def spark_raw(path: str) -> Work:
    """Spark's own reader."""
    from pathlib import Path

    from millpond.engine.spark.session import spark_session

    session = spark_session()
    files = [str(file) for file in sorted(Path(path).glob("p=*/*.parquet"))]
    reader = session.read.option("basePath", path)
    schema = reader.parquet(*files).schema
    return on_spark(lambda: reader.schema(schema).parquet(*files))


def measured(case: str, path: Path) -> list[Result]:
    """Both contenders' medians, and the ratio."""
    jobs = (Job(f"bench.kernel.on_spark:{name}", {"path": str(path)}, 1) for name in (OURS, PEER))
    found = compare(*jobs, rounds=ROUNDS)
    if found.ratio is None or found.low is None or found.high is None:
        return [Result(case, OURS, peer=PEER, error=found.error), Result(case, PEER)]
    between = (found.low, found.high)
    (cpu, peers_cpu), (wall, peers_wall) = found.cpu, found.wall
    return [
        Result(case, OURS, cpu, wall, peer=PEER, ratio=found.ratio, ratio_range=between),
        Result(case, PEER, peers_cpu, peers_wall),
    ]


def wanted(options: Options) -> list[str]:
    """The cases that were asked for; by turns, so both contenders have to be."""
    both = all(options.wants_contender(name) for name in (OURS, PEER))
    return [name for name in CASES if both and options.wants(name)]


def goals(results: list[Result]) -> list[Goal]:
    """What the ratios are held against."""
    return [
        Goal(f"{r.contender} on {r.work}", r.ratio, LIMIT, range=r.ratio_range)
        for r in results
        if r.work in CASES and r.contender == OURS
    ]
