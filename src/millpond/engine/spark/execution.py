"""A run on Spark: Arrow batches, one by one, that can be left early, and what was seen."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from millpond.base.errors import RunCancelledError
from millpond.base.unsaid import cause_of
from millpond.engine.spark.batches import conform
from millpond.engine.spark.errors import translate
from millpond.engine.spark.interrupts import held_interrupt
from millpond.engine.spark.jobs import Jobs
from millpond.engine.spark.observe import Observer
from millpond.engine.spark.required import with_file
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.counters import Counters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.progress import Progress
    from millpond.plan.executor import Observation
    from millpond.plan.node import Plan

    Batches = Iterator[pa.RecordBatch]


class SparkExecution:
    """Batches of one plan. Nothing runs before the first one is asked for."""

    def __init__(
        self,
        plan: Plan,
        batches: Callable[[Jobs], Batches],
        context: Context,
        schema: pa.Schema | None = None,
    ) -> None:
        self.schema = schema or to_arrow_schema(plan.schema)
        self._plan = plan
        self.counters = Counters.begin()
        self._jobs = Jobs(context.session)
        self._observer = Observer(context.session, self._jobs.tag)
        self._open = batches
        self._context = context
        self._source: Batches | None = None
        self._reader: int | None = None
        self._is_closed = False

    def __iter__(self) -> SparkExecution:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._is_closed:
            raise StopIteration
        self._reader = threading.get_ident()
        try:
            batch = self._next()
        except Exception as error:
            self._close()
            if isinstance(error, StopIteration):
                raise
            if self._jobs.is_cancelled:
                raise RunCancelledError("spark") from None
            raise with_file(translate(error, self._plan), self._context) from cause_of(error)
        except BaseException:
            self._close()
            raise
        finally:
            self._reader = None
        self.counters.add("rows_emitted", batch.num_rows)
        return batch

    def _next(self) -> pa.RecordBatch:
        if self._jobs.is_cancelled:
            raise RunCancelledError("spark")
        if self._source is None:
            self._source = self._open(self._jobs)
            self.counters.add("files_opened", self._context.files)
        return next(self._source)

    def cancel(self) -> None:
        """Stop what runs, from any thread; who waits for a batch gets a `RunCancelledError`."""
        self._jobs.cancel()

    def close(self) -> None:
        """Cancel what still runs and release everything; closing twice is harmless."""
        if self._reader not in (None, threading.get_ident()):
            self.cancel()  # another thread waits for a batch: it closes when it has its error
        else:
            self._close()

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        with held_interrupt(), contextlib.ExitStack() as stack:
            stack.callback(self._context.resources.close)
            stack.callback(self._observer.finish, self.counters)
            close = getattr(self._source, "close", None)
            if close is not None:
                stack.callback(close)

    def observations(self) -> tuple[Observation, ...]:
        """The numbers of this run's stages so far."""
        return self._observer.observations()

    def __del__(self) -> None:
        # An abandoned run must not keep Spark busy; at interpreter exit Spark is gone anyway.
        with contextlib.suppress(Exception):
            self.close()


def stream(df: DataFrame, schema: pa.Schema) -> Batches:
    """The DataFrame's rows in the order of its partitions, as batches of this schema."""
    from millpond.engine.spark.stream import arrow_batches

    with contextlib.closing(arrow_batches(df)) as batches:  # type: ignore[type-var]
        for batch in batches:
            if batch.num_rows:
                yield conform(batch, schema)


def watched(
    session: SparkSession,
    batches: Batches,
    jobs: Jobs,
    progress: Callable[[Progress], object] | None,
) -> Batches:
    """The batches; jobs that they start while they are waited for are this run's."""
    from millpond.engine.spark.progress import watch_progress

    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(batches))  # type: ignore[type-var]
        if progress is not None:
            stack.enter_context(watch_progress(session, progress))
        while True:
            with jobs.started_here():
                batch = next(batches, None)
            if batch is None:
                return
            yield batch
