from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from millpond.base.errors import EngineError
from millpond.engine.spark.errors import translate
from millpond.engine.spark.progress import Progress, Stage, summarize, watch_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLEEP = "java_method('java.lang.Thread', 'sleep', 50L)"


def test_skipped_stages_do_not_count() -> None:
    stages = [Stage(0, 4, 4, 10), Stage(1, 200, 0, 0), Stage(2, 8, 2, 5)]
    assert summarize(stages) == Progress(1, 3, 6, 12, bytes_read=15)
    done = summarize([Stage(0, 4, 4), Stage(1, 200, 0)], done=True)
    assert (done.stages_done, done.stages_total, done.fraction) == (1, 1, 1.0)
    assert summarize([]).fraction is None


@pytest.mark.spark
def test_progress_reaches_its_end(spark: SparkSession) -> None:
    seen: list[Progress] = []
    with watch_progress(spark, seen.append, interval=0.02):
        spark.range(0, 8, 1, 8).repartition(3).selectExpr("id % 2 AS k").groupBy(
            "k"
        ).count().collect()
    assert [p.done for p in seen] == [False] * (len(seen) - 1) + [True]
    last = seen[-1]
    assert last.tasks_done == last.tasks_total >= 9
    assert last.stages_done == last.stages_total
    assert [p.tasks_done for p in seen] == sorted(p.tasks_done for p in seen)


@pytest.mark.spark
def test_only_the_watched_work_counts(spark: SparkSession) -> None:
    seen: list[Progress] = []
    with watch_progress(spark, seen.append):
        other = threading.Thread(target=spark.range(0, 5, 1, 5).collect)
        other.start()
        other.join()
    assert seen == [Progress(0, 0, 0, 0, done=True)]
    spark.range(3).count()
    assert len(seen) == 1


@pytest.mark.spark
def test_no_callback_no_thread(spark: SparkSession) -> None:
    before = set(threading.enumerate())
    with watch_progress(spark):
        assert set(threading.enumerate()) == before


@pytest.mark.spark
def test_a_callback_that_fails_does_not_stop_the_work(spark: SparkSession) -> None:
    def fail(progress: Progress) -> None:
        raise ValueError(progress)

    with watch_progress(spark, fail, interval=0.01):
        assert spark.range(0, 100, 1, 4).count() == 100


@pytest.mark.spark
def test_cancel(spark: SparkSession) -> None:
    with watch_progress(spark) as watch:
        timer = threading.Timer(0.5, watch.cancel)
        timer.start()
        with pytest.raises(Exception) as caught:  # noqa: PT011
            spark.range(0, 1000, 1, 1000).selectExpr(SLEEP).collect()
        timer.join()
    assert watch.is_cancelled
    assert isinstance(translate(caught.value), EngineError)
    assert spark.range(3).count() == 3


@pytest.mark.spark
@pytest.mark.parametrize("before", [None, "false"])
def test_the_thread_is_as_it_was(spark: SparkSession, before: Any) -> None:
    context: Any = spark.sparkContext
    context.setLocalProperty("spark.job.interruptOnCancel", before)
    with watch_progress(spark):
        assert context.getLocalProperty("spark.job.interruptOnCancel") == "true"
    assert context.getLocalProperty("spark.job.interruptOnCancel") == before
    context.setLocalProperty("spark.job.interruptOnCancel", None)
