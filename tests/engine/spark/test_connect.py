"""Spark Connect: a server on this machine, and a process of its own for each of its clients.

PySpark speaks to one kind of session in a process, and the other tests' is a classic one.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .conftest import script_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import RunScript

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).parents[3]
CASES = (
    *("source", "filter", "project", "aggregate", "sort", "join_inner", "union"),
    *("take", "stateful", "filter_ordered"),
)
"""One of each kind: native, Python in workers, and order that has to survive."""


@contextlib.contextmanager
def connect_server(scratch: Path) -> Iterator[str]:
    code = """
        import socket, sys
        from millpond.base.settings import Settings
        from millpond.engine.spark.session import spark_session
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        spark_session(Settings.load(env={}, spark_master="local[2]", spark_conf={
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
        }))
        print(f"sc://127.0.0.1:{port}", flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=script_environment(scratch),
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()


def test_streams_errors_and_progress(run_script: RunScript, scratch: Path) -> None:
    with connect_server(scratch) as address:
        done = run_script(
            """
            import sys
            from millpond.base.errors import EvaluationError, SourceError, SqlError
            from millpond.base.settings import Settings
            from millpond.engine.spark import remote_stream
            from millpond.engine.spark.errors import translate
            from millpond.engine.spark.progress import watch_progress
            from millpond.engine.spark.session import spark_session
            from millpond.engine.spark.stream import arrow_batches, arrow_schema
            spark = spark_session(Settings.load(env={}, spark_master=sys.argv[1]))
            df = spark.range(0, 30_000, 1, 5).selectExpr(
                "id", "timestamp_micros(id) AS t", "map('a', id) AS m", "array(id) AS l", "id AS id"
            )
            for direct in (1 << 30, 0):
                remote_stream._DIRECT_BYTES = direct
                rows = 0
                for batch in arrow_batches(df, batch_rows=1000):
                    assert batch.schema == arrow_schema(df)
                    assert batch.column(0)[0].as_py() == rows
                    assert 0 < batch.num_rows <= 1000
                    rows += batch.num_rows
                assert rows == 30_000
                left = arrow_batches(df, batch_rows=10)
                next(left)
                left.close()
                assert list(arrow_batches(spark.range(9).where("id < 0"), batch_rows=10)) == []
                try:
                    list(arrow_batches(spark.range(9).selectExpr("1 / (id - 5)"), batch_rows=10))
                except EvaluationError:
                    pass
                else:
                    raise AssertionError
                assert spark.catalog.listTables() == []
            for text, kind in (("SELEC 1", SqlError), ("SELECT x FROM range(1)", SqlError)):
                try:
                    spark.sql(text).collect()
                except Exception as error:
                    assert isinstance(translate(error), kind), error
            try:
                spark.read.parquet("/no/where").collect()
            except Exception as error:
                assert translate(error).path == "/no/where"
            seen = []
            with watch_progress(spark, seen.append, interval=0.05):
                spark.range(0, 30_000_000, 1, 8).selectExpr("sum(sqrt(id))").collect()
            assert seen[-1].done and seen[-1].tasks_done >= 8, seen
            assert spark.conf.get("spark.connect.progress.reportInterval", None) is None
            print("fine")
            """,
            address,
        )
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_structs_and_rows_without_members(run_script: RunScript, scratch: Path) -> None:
    with connect_server(scratch) as address:
        done = run_script(
            """
            import sys
            from millpond.base.settings import Settings
            from millpond.engine.spark import SparkEngine, remote_stream
            from millpond.engine.spark.session import spark_session
            from millpond.engine.spark.stream import arrow_batches
            from millpond.plan.make import values
            spark = spark_session(Settings.load(env={}, spark_master=sys.argv[1]))
            rows = spark.range(0, 9, 1, 2)
            odd = {"NULL AS c": None, "struct() AS c": {}, "array(struct()) AS c": [{}]}
            for direct in (1 << 30, 0):
                remote_stream._DIRECT_BYTES = direct
                for text, value in odd.items():
                    df = rows.selectExpr("id AS a", text, "id AS z")
                    found = [row for b in arrow_batches(df, batch_rows=2) for row in b.to_pylist()]
                    assert found == [{"a": i, "c": value, "z": i} for i in range(9)], found
                for df in (rows.selectExpr("NULL AS a", "NULL AS b"), rows.select()):
                    counts = [batch.num_rows for batch in arrow_batches(df, batch_rows=2)]
                    assert sum(counts) == 9 and max(counts) == 2, counts
                bare = SparkEngine(spark).execute(values([{"a": 1}, {"a": 2}]).select())
                assert sum(batch.num_rows for batch in bare) == 2
            print("fine")
            """,
            address,
        )
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_cancelling_and_errors(run_script: RunScript, scratch: Path) -> None:
    with connect_server(scratch) as address:
        done = run_script(
            """
            import os, signal, sys, threading, time
            from millpond.base.errors import EngineError, SqlError
            from millpond.base.settings import Settings
            from millpond.engine.spark import SparkEngine
            from millpond.engine.spark.session import spark_session
            from millpond.plan.expr import col
            from millpond.plan.make import values
            from millpond.plan.sources import File, Scan
            from millpond.plan.streams import Sql
            from millpond.plan.types import LONG, STRING, Struct

            engine = SparkEngine(spark_session(Settings.load(env={}, spark_master=sys.argv[1])))
            rows = values([{"x": 1}, {"x": 2}])
            text = (
                "SELECT java_method('java.lang.Thread', 'sleep', 3600000L) AS s "
                "FROM range(0, 8, 1, 4)"
            )
            stuck = Sql(text, ("t",), (rows,), Struct.of(s=STRING), "session")
            for asked in (text, "SELECT '${env:PATH}' AS s FROM t WHERE x > 1"):
                try:
                    plan = Sql(asked, ("t",), (rows,), Struct.of(s=STRING))
                    print([batch.to_pylist() for batch in engine.execute(plan)])
                except SqlError as error:
                    print(error.message.splitlines()[0])
            report = stuck.explain_analyze(engine=engine, time_budget_ms=2000)
            print(report.partial, report.rows)
            threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                list(engine.execute(stuck))
            except KeyboardInterrupt:
                print("stopped")
            print(sum(batch.num_rows for batch in engine.execute(rows)))
            odd = Scan("parquet", (File("/a*.parquet"),), Struct.of(x=LONG))
            for plan in (rows.select(y=col("x") % (col("x") - 1)), odd):
                try:
                    list(engine.execute(plan))
                except EngineError as error:
                    print(error.message)
            """,
            address,
        )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "java_method is not a function that a query may call (line 1, column 8)",
        "[[{'s': '${env:PATH}'}]]",
        "stopped after 2000 ms (time_budget_ms) 0",
        "stopped",
        "2",
        "division by zero in (x % (x - 1))",
        "Spark Connect takes '/a*.parquet' for a pattern, not for the name of one file",
    ]


def test_parity(scratch: Path) -> None:
    with connect_server(scratch) as address:
        tests = [f"tests/engine/test_parity.py::TestSpark::test_node[{case}]" for case in CASES]
        answer = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
            capture_output=True,
            text=True,
            env={**os.environ, "TEST_SPARK_MASTER": address},
            cwd=ROOT,
            check=False,
        )
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr[-2000:]
    assert f"{len(CASES)} passed" in answer.stdout
