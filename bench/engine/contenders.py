"""The four contenders: how each gets from the file to the end of a case's result.

The Arrow engine and DuckDB begin with the file's path in every run: they find its schema, plan,
read, and hand out Arrow record batches to the end, which are counted and dropped. Both use as many
threads as they do by default. The two Spark contenders share the session's configuration and the
sink (Spark's `noop` writer, which takes all rows and columns). There the schema is found once,
before the runs: Spark by hand would start a job for it each time. Everything else, in ours the
optimizer and the compiler too, is in every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.digest import Digest
from bench.engine.cases import case_named
from bench.measure import Work
from bench.noop import on_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa
    from pyspark.sql import DataFrame


def arrow(case: str, path: str) -> Work:
    """Our Arrow engine."""
    import millpond as mp

    query = case_named(case)

    def batches() -> Iterable[pa.RecordBatch]:
        plan = query.plan(mp.scan(path))
        return plan.execute(engine="arrow", ordered=query.order != "free")

    return _in_process(batches)


def duckdb(case: str, path: str) -> Work:
    """DuckDB on the same file."""
    from duckdb import connect

    sql = case_named(case).sql.format(events=f"read_parquet('{path}')")
    connection = connect()
    connection.execute("set TimeZone = 'UTC'")

    def batches() -> Iterable[pa.RecordBatch]:
        # Through a relation: results of `execute` would be copied once more.
        return connection.sql(sql).to_arrow_reader()  # type: ignore[no-any-return]

    return _in_process(batches)


def spark_raw(case: str, path: str) -> Work:
    """Spark with a DataFrame written by hand."""
    from millpond.engine.spark.session import spark_session

    query, session = case_named(case), spark_session()
    schema = session.read.parquet(path).schema
    return on_spark(lambda: query.spark(session.read.schema(schema).parquet(path)))


def spark(case: str, path: str) -> Work:
    """Our Spark engine, which makes a DataFrame of the plan."""
    import millpond as mp
    from millpond.engine.spark import SparkEngine
    from millpond.engine.spark.session import spark_session
    from millpond.plan.optimizer import optimize

    query, engine, events = case_named(case), SparkEngine(spark_session()), mp.scan(path)

    def frame() -> DataFrame:
        plan = optimize(query.plan(events))
        return engine.to_dataframe(plan, ordered=query.order == "sorted")

    return on_spark(frame)


CONTENDERS: Final[dict[str, Callable[[str, str], Work]]] = {
    "arrow": arrow,
    "duckdb": duckdb,
    "spark": spark,
    "spark_raw": spark_raw,
}
PEERS: Final = {"arrow": "duckdb", "spark": "spark_raw"}
ON_A_JVM: Final = ("spark", "spark_raw")


def _in_process(batches: Callable[[], Iterable[pa.RecordBatch]]) -> Work:
    def run() -> None:
        for _ in batches():
            pass

    return Work(run, lambda: Digest.of(batches()))
