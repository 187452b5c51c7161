"""The numbers of one run's own stages: tasks, rows and bytes read, shuffles, spills, time.

In a classic session the run's jobs carry a tag of their own, by which Spark's status store is
asked; a Connect server does not tell them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.engine.spark.api import is_classic
from millpond.plan.executor import Observation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millpond.plan.counters import Counters

_NUMBERS = {
    "input_rows": "inputRecords",
    "input_bytes": "inputBytes",
    "shuffle_read_rows": "shuffleReadRecords",
    "shuffle_read_bytes": "shuffleReadBytes",
    "shuffle_write_rows": "shuffleWriteRecords",
    "shuffle_write_bytes": "shuffleWriteBytes",
    "memory_spill_bytes": "memoryBytesSpilled",
    "disk_spill_bytes": "diskBytesSpilled",
}


class Observer:
    """Reads what Spark's status store knows of the stages of the jobs with this tag."""

    def __init__(self, session: SparkSession, tag: str) -> None:
        self._session = session
        self._tag = tag
        self._final: tuple[Observation, ...] | None = None

    def finish(self, counters: Counters) -> None:
        """Keep the numbers, since Spark forgets old stages, and add them to the counters."""
        if self._final is not None:
            return
        try:
            self._final = self.observations()
        except Exception:  # noqa: BLE001 - the JVM is gone, and its numbers with it
            self._final = ()
        for seen in self._final:
            counters.add("bytes_read", int(seen.details["input_bytes"]))
            counters.add("rows_decoded", int(seen.details["input_rows"]))
            counters.add("spill_bytes", int(seen.details["disk_spill_bytes"]))

    def observations(self) -> tuple[Observation, ...]:
        """One for each stage that has run."""
        if self._final is not None:
            return self._final
        if not is_classic(self._session):
            return ()
        core: Any = self._session.sparkContext._jsc.sc()  # noqa: SLF001 - not in the public API
        # The store learns of things through a queue: wait until it knows what has happened.
        core.listenerBus().waitUntilEmpty()
        tracker, store = core.statusTracker(), core.statusStore()
        found: list[Observation] = []
        for job in sorted(tracker.getJobIdsForTag(self._tag)):
            info = tracker.getJobInfo(job)
            for stage in sorted(info.get().stageIds()) if info.isDefined() else ():
                seen = _stage(store, stage)
                if seen is not None:
                    found.append(seen)
        return tuple(found)


def physical_plan(df: DataFrame) -> str:
    """Spark's formatted physical plan; no data is read for it."""
    frame: Any = df
    session: Any = df.sparkSession
    if is_classic(session):
        query = frame._jdf.queryExecution()  # noqa: SLF001 - PySpark can only print it
        return str(session._jvm.PythonSQLUtils.explainString(query, "formatted"))  # noqa: SLF001
    return str(frame._explain_string(mode="formatted"))  # noqa: SLF001


def _stage(store: Any, stage: int) -> Observation | None:
    from py4j.protocol import Py4JJavaError

    try:
        data = store.lastStageAttempt(stage)
    except Py4JJavaError:
        return None  # planned, and never begun
    if data.numCompleteTasks() == 0:
        return None  # skipped: its result was there already
    details = {name: int(getattr(data, method)()) for name, method in _NUMBERS.items()}
    details |= {"stage": stage, "tasks": data.numTasks()}
    return Observation(
        name=f"stage {stage}",
        rows=details["input_rows"] + details["shuffle_read_rows"],
        seconds=data.executorRunTime() / 1000,
        details=details,
    )
