"""Rows of Delta tables on Spark, against `spark.read.parquet` of the same files.

Both take turns in one JVM, and Spark's `noop` writer takes all rows and columns. The peer is told
the schema and the files; ours reads the log every time. Of a table with deletion vectors a person
would leave out the same rows by their positions, with a join; that is the same work, and has a
goal. `spark_deletions_all` is against reading the files with all rows in them, deleted ones, too:
other work, without a goal, that shows what leaving rows out costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.measure import Job, compare
from bench.noop import on_spark
from bench.result import Goal, Result

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from bench.measure import Work
    from bench.options import Options

OURS: Final = "spark"
ROUNDS: Final = 20


@dataclass(frozen=True, slots=True)
class Case:
    """A table, whom we are compared with, and the most that we may take of their CPU time."""

    table: str
    peer: str = "spark_raw"
    limit: float | None = 1.05


CASES: Final = {
    "spark_numeric": Case("numeric"),
    "spark_strings": Case("strings"),
    "spark_deletions": Case("deletions", peer="spark_raw_live"),
    "spark_deletions_all": Case("deletions", limit=None),
}


def spark(path: str) -> Work:
    """Our kernel and engine."""
    from millpond import delta_table
    from millpond.engine.spark.session import spark_session

    session = spark_session()
    return on_spark(lambda: delta_table(path).scan().to_spark(session))


def spark_raw(path: str) -> Work:
    """Spark's own reader."""
    from millpond.engine.spark.session import spark_session

    session = spark_session()
    schema = _files(session, path).schema
    return on_spark(lambda: _files(session, path, schema))


def spark_raw_live(path: str) -> Work:
    """The same without the deleted rows, whose positions it is given."""
    from pathlib import Path

    from pyspark.sql import functions as f

    from bench.kernel import tables
    from millpond.engine.spark.session import spark_session

    session = spark_session()
    schema = _files(session, path).schema
    deleted = f.broadcast(session.createDataFrame(tables.deleted_rows(Path(path))).cache())

    def live() -> DataFrame:
        place = [f.col("_metadata.file_name").alias("_f"), f.col("_metadata.row_index").alias("_r")]
        rows = _files(session, path, schema).select("*", *place)
        return rows.join(deleted, ["_f", "_r"], "left_anti").drop("_f", "_r")

    return on_spark(live)


def _files(session: SparkSession, path: str, schema: object = None) -> DataFrame:
    from pathlib import Path

    files = [str(file) for file in sorted(Path(path).glob("p=*/*.parquet"))]
    reader = session.read.option("basePath", path)
    return (reader if schema is None else reader.schema(schema)).parquet(*files)  # type: ignore[arg-type]


def measured(case: str, path: Path) -> list[Result]:
    """Both contenders' medians, and the ratio."""
    peer = CASES[case].peer
    jobs = (Job(f"bench.kernel.on_spark:{name}", {"path": str(path)}, 1) for name in (OURS, peer))
    found = compare(*jobs, rounds=ROUNDS)
    if found.ratio is None or found.low is None or found.high is None:
        return [Result(case, OURS, peer=peer, error=found.error), Result(case, peer)]
    between = (found.low, found.high)
    (cpu, peers_cpu), (wall, peers_wall) = found.cpu, found.wall
    return [
        Result(case, OURS, cpu, wall, peer=peer, ratio=found.ratio, ratio_range=between),
        Result(case, peer, peers_cpu, peers_wall),
    ]


def wanted(options: Options) -> list[str]:
    """The cases that were asked for; by turns, so both contenders have to be."""
    return [
        name
        for name, case in CASES.items()
        if options.wants(name) and all(map(options.wants_contender, (OURS, case.peer)))
    ]


def goals(results: list[Result]) -> list[Goal]:
    """What the ratios are held against."""
    return [
        Goal(f"{r.contender} on {r.work}", r.ratio, limit, range=r.ratio_range)
        for r in results
        if r.work in CASES and r.contender == OURS
        if (limit := CASES[r.work].limit) is not None
    ]
