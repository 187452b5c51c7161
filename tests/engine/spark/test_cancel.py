"""Runs that are stopped before their end: by a time budget, another thread, Ctrl-C, or closing."""

from __future__ import annotations

import signal
import textwrap
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millpond.base.errors import RunCancelledError
from millpond.engine.spark import SparkEngine
from millpond.engine.spark.jobs import Jobs
from millpond.plan.make import values
from millpond.plan.streams import Sql
from millpond.plan.types import LONG, STRING, Struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millpond.plan.node import Plan

    from .conftest import RunScript

pytestmark = pytest.mark.spark

# Far longer than a test may take: only a run that is cancelled comes to its end.
SLEEP = "java_method('java.lang.Thread', 'sleep', 3600000L)"
SLEEPERS = f"(SELECT id, {SLEEP} AS s FROM range(0, 8, 1, 4))"
STUCK = {
    "a plain stage": f"SELECT s FROM {SLEEPERS}",
    "a shuffle": f"SELECT s FROM {SLEEPERS} GROUP BY s",
    "a broadcast": f"SELECT /*+ BROADCAST(b) */ b.s FROM t JOIN {SLEEPERS} b ON t.x = b.id",
}


def stuck(kind: str = "a plain stage") -> Plan:
    rows = values([{"x": n} for n in range(10)], Struct.of(x=LONG))
    return Sql(STUCK[kind], ("t",), (rows,), Struct.of(s=STRING), "session")


def is_running(spark: SparkSession) -> bool:
    return bool(spark.sparkContext.statusTracker().getActiveJobsIds())


def wait_until(spark: SparkSession, *, running: bool) -> None:
    while is_running(spark) != running:  # the suite's own timeout ends a wait that is in vain
        time.sleep(0.02)


def cancel_when_it_runs(spark: SparkSession, run: Any) -> threading.Thread:
    def cancel() -> None:
        wait_until(spark, running=True)
        run.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    return thread


@pytest.mark.parametrize("kind", STUCK)
def test_from_another_thread(spark: SparkSession, kind: str) -> None:
    engine = SparkEngine(spark)
    run = engine.execute(stuck(kind))
    other = cancel_when_it_runs(spark, run)
    with pytest.raises(RunCancelledError, match="spark"):
        next(run)
    other.join()
    wait_until(spark, running=False)
    assert list(run) == []
    assert [batch.num_rows for batch in engine.execute(values([{"x": 1}]))] == [1]


def test_before_it_begins(spark: SparkSession) -> None:
    run = SparkEngine(spark).execute(stuck())
    run.cancel()
    with pytest.raises(RunCancelledError):
        next(run)
    assert not is_running(spark)


def test_between_two_jobs(spark: SparkSession) -> None:
    jobs = Jobs(spark)
    with jobs.started_here():
        assert spark.range(3).count() == 3
    jobs.cancel()
    with pytest.raises(RunCancelledError), jobs.started_here():
        pytest.fail("a run that was cancelled started another job")


def test_other_runs_go_on(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    other = engine.execute(values([{"x": n} for n in range(20_001)]))
    assert next(other).num_rows
    run = engine.execute(stuck())
    thread = cancel_when_it_runs(spark, run)
    with pytest.raises(RunCancelledError):
        next(run)
    thread.join()
    assert sum(batch.num_rows for batch in other) > 0


def test_closed_by_another_thread(spark: SparkSession) -> None:
    run = SparkEngine(spark).execute(stuck())

    def close() -> None:
        wait_until(spark, running=True)
        run.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(RunCancelledError):
        next(run)
    thread.join()
    wait_until(spark, running=False)


@pytest.mark.parametrize("kind", STUCK)
def test_a_time_budget_ends_a_run_before_its_first_batch(spark: SparkSession, kind: str) -> None:
    report = stuck(kind).explain_analyze(engine=SparkEngine(spark), time_budget_ms=1000)
    assert report.partial == "stopped after 1000 ms (time_budget_ms)"
    assert (report.rows, report.batches) == (0, 0)
    wait_until(spark, running=False)


SCRIPT = f"""
    import os, signal, sys, threading, time
    from millpond.base.settings import Settings
    from millpond.engine.spark import SparkEngine
    from millpond.engine.spark import session
    from millpond.plan.make import values
    from millpond.plan.streams import Sql
    from millpond.plan.types import STRING, Struct

    rows = values([{{"x": 1}}, {{"x": 2}}])
    text = "SELECT s FROM {SLEEPERS}"
    stuck = Sql(text, ("t",), (rows,), Struct.of(s=STRING), "session")
    spark = session.spark_session(Settings.load(env={{}}, spark_master="local[2]"))
    engine = SparkEngine(spark)

    def running():
        return spark.sparkContext.statusTracker().getActiveJobsIds()

    def interrupt_when_it_runs():
        def interrupt():
            while not running():
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt, daemon=True).start()
"""


def script(rest: str) -> str:
    return textwrap.dedent(SCRIPT) + textwrap.dedent(rest)


def test_ctrl_c_stops_the_job_and_a_killed_python_takes_its_jvm_along(
    run_script: RunScript,
) -> None:
    """One JVM for both: the session goes on after Ctrl-C, and the JVM ends with its process."""
    done = run_script(
        script(
            """
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            for _ in range(3):
                interrupt_when_it_runs()
                run = engine.execute(stuck)
                try:
                    next(run)
                except KeyboardInterrupt:
                    print("stopped", list(run))
                while running():
                    time.sleep(0.02)
                print(sum(batch.num_rows for batch in engine.execute(rows)))
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            print(session._running.jvm.process.pid, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
            """
        )
    )
    said, pid = done.stdout.rsplit(maxsplit=1)
    assert (said, done.stderr) == (("stopped []\n2\n" * 3).rstrip(), "")
    assert done.returncode == -signal.SIGKILL
    while Path(f"/proc/{pid}").exists():  # the suite's own timeout ends a wait that is in vain
        time.sleep(0.02)


@pytest.mark.slow
def test_ctrl_c_that_nobody_catches_ends_the_process_in_one_stack(run_script: RunScript) -> None:
    done = run_script(script("interrupt_when_it_runs()\nlist(engine.execute(stuck))"))
    assert done.returncode == -2  # ended by SIGINT, as a shell expects
    assert done.stdout == ""
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.endswith("KeyboardInterrupt\n")
    assert "py4j" not in done.stderr


@pytest.mark.slow
def test_ctrl_c_while_spark_starts(run_script: RunScript) -> None:
    done = run_script(
        """
        import os, signal, threading, time
        from pyspark import SparkContext
        from millpond.base.settings import Settings
        from millpond.engine.spark.session import spark_session

        def interrupt():
            while SparkContext._gateway is None:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        settings = Settings.load(env={}, spark_master="local[1]")
        try:
            spark_session(settings)
        except KeyboardInterrupt:
            print("stopped")
        print(spark_session(settings).range(3).count())
        """
    )
    assert (done.stdout, done.stderr) == ("stopped\n3\n", "")
