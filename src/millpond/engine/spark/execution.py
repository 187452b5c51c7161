"""A run on Spark: Arrow batches, one by one, that can be left early, and what was seen."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from millpond.engine.spark.batches import conform
from millpond.engine.spark.errors import translate
from millpond.plan.counters import Counters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millpond.engine.spark.observe import Observer
    from millpond.engine.spark.progress import Progress
    from millpond.plan.executor import Observation

    Batches = Iterator[pa.RecordBatch]


class SparkExecution:
    """Batches of one plan. Nothing runs before the first one is asked for."""

    def __init__(
        self,
        schema: pa.Schema,
        batches: Callable[[], Batches],
        *,
        observer: Observer,
        resources: contextlib.ExitStack,
        files: int,
    ) -> None:
        self.schema = schema
        self.counters = Counters.begin()
        self._source: Batches | None = None
        self._open = batches
        self._observer = observer
        self._resources = resources
        self._files = files
        self._is_closed = False

    def __iter__(self) -> SparkExecution:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._is_closed:
            raise StopIteration
        try:
            if self._source is None:
                self.counters.add("files_opened", self._files)
                self._source = self._open()
            batch = next(self._source)
        except StopIteration:
            self.close()
            raise
        except Exception as error:
            self.close()
            raise translate(error) from error
        self.counters.add("rows_emitted", batch.num_rows)
        return batch

    def close(self) -> None:
        """Cancel what still runs and release everything; closing twice is harmless."""
        if self._is_closed:
            return
        self._is_closed = True
        with contextlib.ExitStack() as stack:
            stack.callback(self._resources.close)
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


def observed(
    session: SparkSession,
    batches: Batches,
    observer: Observer,
    progress: Callable[[Progress], object] | None,
) -> Batches:
    """The batches; jobs that they start while they are waited for count as this run's."""
    from millpond.engine.spark.progress import watch_progress

    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(batches))  # type: ignore[type-var]
        if progress is not None:
            stack.enter_context(watch_progress(session, progress))
        while True:
            with observer.watching(session):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch
