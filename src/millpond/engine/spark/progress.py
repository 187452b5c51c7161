"""Progress of long Spark work, and a way to stop it.

`watch_progress()` marks the jobs that its thread starts, and calls back now and then with how many
stages and tasks are done. A classic session is asked from a thread of our own; a Connect server
reports by itself. Stages that Spark skips (their shuffle exists already) never start, so only
stages that run or ran are counted.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

_INTERRUPT = "spark.job.interruptOnCancel"
_INTERVAL = "spark.connect.progress.reportInterval"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the watched work is. Totals grow while Spark plans further stages."""

    stages_done: int
    stages_total: int | None
    tasks_done: int
    tasks_total: int
    bytes_read: int | None = None
    """Known over Spark Connect alone."""
    done: bool = False

    @property
    def fraction(self) -> float | None:
        """Done tasks by known tasks, from 0 to 1; None before the first task is known.

        >>> Progress(0, 1, tasks_done=1, tasks_total=4).fraction
        0.25
        """
        return self.tasks_done / self.tasks_total if self.tasks_total else None


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage's counts."""

    id: int
    tasks: int
    tasks_done: int
    bytes_read: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether all of its tasks are done."""
        return self.tasks > 0 and self.tasks_done >= self.tasks


def summarize(stages: Iterable[Stage], *, done: bool = False) -> Progress:
    """Sum up the stages that run or ran; the rest were skipped, or wait.

    >>> progress = summarize([Stage(0, 4, 4), Stage(1, 8, 2), Stage(2, 200, 0)])
    >>> progress.stages_done, progress.stages_total, progress.tasks_done, progress.tasks_total
    (1, 3, 6, 12)
    """
    known = list(stages)
    started = [s for s in known if s.tasks_done > 0]
    sizes = [s.bytes_read for s in known if s.bytes_read is not None]
    return Progress(
        stages_done=sum(s.is_done for s in started),
        stages_total=len(known) if not done else len(started),
        tasks_done=sum(s.tasks_done for s in started),
        tasks_total=sum(s.tasks for s in started),
        bytes_read=sum(sizes) if sizes else None,
        done=done,
    )


@dataclass(slots=True)
class Watch:
    """A watched piece of work: `cancel()` stops it, from any thread."""

    _cancel: Callable[[], object]
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Stop the jobs that run; the code that waits for them gets an error."""
        self._cancelled.set()
        self._cancel()

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel()` was called."""
        return self._cancelled.is_set()


@contextlib.contextmanager
def watch_progress(
    session: SparkSession,
    callback: Callable[[Progress], object] | None = None,
    *,
    interval: float = 0.5,
) -> Iterator[Watch]:
    """Watch the Spark work that this thread does in the block; without a callback nothing polls.

    The callback runs in another thread (over Connect: in this one); the last call says `done`.
    An error that it raises ends the watching, never the work.
    """
    tag = f"millpond-{uuid.uuid4().hex}"
    watched = _watch_remote if not hasattr(session, "_jsparkSession") else _watch_classic
    with watched(session, callback, tag, interval) as watch:
        yield watch


@contextlib.contextmanager
def _watch_classic(
    session: SparkSession,
    callback: Callable[[Progress], object] | None,
    tag: str,
    interval: float,
) -> Iterator[Watch]:
    context: Any = session.sparkContext
    tracker = context._jsc.sc().statusTracker()  # noqa: SLF001
    context.addJobTag(tag)
    before = context.getLocalProperty(_INTERRUPT)
    context.setInterruptOnCancel(True)
    watch = Watch(lambda: context.cancelJobsWithTag(tag))
    stop = threading.Event()
    poller: threading.Thread | None = None
    if callback is not None:
        poller = threading.Thread(
            target=_poll,
            args=(tracker, callback, tag, interval, stop),
            name="millpond-spark-progress",
            daemon=True,
        )
        poller.start()
    try:
        yield watch
    finally:
        stop.set()
        if poller is not None:
            poller.join()
        with contextlib.suppress(Exception):  # the JVM may be gone
            context.removeJobTag(tag)
            context.setLocalProperty(_INTERRUPT, before)


def _poll(
    tracker: Any,
    callback: Callable[[Progress], object],
    tag: str,
    interval: float,
    stop: threading.Event,
) -> None:
    seen: dict[int, Stage] = {}
    # A JVM that is gone, or a callback that fails, ends the watching.
    with contextlib.suppress(Exception):
        while not stop.wait(interval):
            callback(summarize(_classic_stages(tracker, tag, seen)))
        callback(summarize(_classic_stages(tracker, tag, seen), done=True))


def _classic_stages(tracker: Any, tag: str, seen: dict[int, Stage]) -> list[Stage]:
    """The stages of the tagged jobs; `seen` keeps those that Spark forgets or that are finished."""
    for job in tracker.getJobIdsForTag(tag):
        info = tracker.getJobInfo(job)
        for stage in info.get().stageIds() if info.isDefined() else ():
            if stage in seen and seen[stage].is_done:
                continue
            found = tracker.getStageInfo(stage)
            if found.isDefined():
                counts = found.get()
                seen[stage] = Stage(stage, counts.numTasks(), counts.numCompletedTasks())
    return list(seen.values())


@contextlib.contextmanager
def _watch_remote(
    session: Any,
    callback: Callable[[Progress], object] | None,
    tag: str,
    interval: float,
) -> Iterator[Watch]:
    operations: dict[str, list[Stage]] = {}
    failed = threading.Event()

    def report(stages: Any, operation_id: str | None = None, **_: Any) -> None:
        known = [
            Stage(s.stage_id, s.num_tasks, s.num_completed_tasks, s.num_bytes_read)
            for s in stages or ()
        ]
        if known:
            operations[operation_id or ""] = known
        tell(done=False)

    def tell(*, done: bool) -> None:
        if callback is None or failed.is_set():
            return
        try:
            callback(summarize((s for op in operations.values() for s in op), done=done))
        except Exception:  # noqa: BLE001 - an error of the callback ends the watching, not the work
            failed.set()

    session.addTag(tag)
    before: str | None = None
    if callback is not None:
        session.registerProgressHandler(report)
        with contextlib.suppress(Exception):  # a static setting on some servers
            before = session.conf.get(_INTERVAL, None)
            session.conf.set(_INTERVAL, f"{int(interval * 1000)}ms")
    try:
        yield Watch(lambda: session.interruptTag(tag))
    finally:
        if callback is not None:
            session.removeProgressHandler(report)
            with contextlib.suppress(Exception):
                _set(session, _INTERVAL, before)
            tell(done=True)
        with contextlib.suppress(Exception):  # the server may be gone
            session.removeTag(tag)


def _set(session: Any, name: str, value: str | None) -> None:
    if value is None:
        session.conf.unset(name)
    else:
        session.conf.set(name, value)
