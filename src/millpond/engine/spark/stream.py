"""Results as a stream of Arrow batches, in the order of the partitions, in bounded memory.

Spark has no public way to do this: what it offers keeps the whole result or a whole partition in
the driver's heap. In a classic session we therefore let each task write its Arrow batches to a
block on its own disk (the storage level `DISK_ONLY`, which is written and read as a stream), and
then read the blocks one after another through a socket, which holds back the JVM when we do not
read. A few partitions at a time are made like that (a wave), so that all cores work, first rows
come early, and the disk holds no more than a wave. A partition may be larger than the heap.

Over Spark Connect there are no blocks: see `remote_stream.py`.
"""

# The classes between Spark SQL and a socket are private to Spark; they are all named in this file.
# ruff: noqa: SLF001

from __future__ import annotations

import contextlib
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

from millpond.base.errors import EngineError
from millpond.engine.spark.errors import translated

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

# A wave that is smaller than this is followed by one that is twice as wide: jobs have a fixed cost.
_SMALL_WAVE_BYTES = 64 << 20
_HEADER_BYTES = 4


def arrow_schema(df: DataFrame) -> pa.Schema:
    """The Arrow schema of the batches: UTC timestamps, no large types, names and nulls as given."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    with translated():
        schema = to_arrow_schema(df.schema, timezone="UTC")
    # Spark's own notes on fields (comments, defaults) are not part of the result.
    return pa.schema([field.remove_metadata() for field in schema])


def arrow_batches(
    df: DataFrame, *, batch_rows: int = 10_000, prefetch: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of `df` in order, as batches of at most `batch_rows`; no batch is empty.

    Nothing runs before the first batch is asked for. `prefetch` computes the next partitions while
    the caller works on these. Closing the iterator early cancels what still runs.
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows must be at least 1, not {batch_rows}")
    schema = arrow_schema(df)
    if not hasattr(df, "_jdf"):
        from millpond.engine.spark.remote_stream import remote_batches

        return remote_batches(df, schema, batch_rows=batch_rows)
    return _classic_batches(df, schema, batch_rows=batch_rows, prefetch=prefetch)


def _classic_batches(
    df: DataFrame, schema: pa.Schema, *, batch_rows: int, prefetch: bool
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    blocks: _Blocks | None = None
    try:
        with translated():
            blocks = _Blocks(df, batch_rows)
            with contextlib.closing(blocks.read(prefetch=prefetch)) as frames:
                for frame in frames:
                    yield pa.ipc.read_record_batch(pa.py_buffer(frame), schema)
    finally:
        if blocks is not None:
            blocks.close()


class _Blocks:
    """A DataFrame's partitions as blocks of Arrow batches on the executors' disks."""

    def __init__(self, df: DataFrame, batch_rows: int) -> None:
        context: Any = df.sparkSession.sparkContext
        self._jvm, self._jsc = context._jvm, context._jsc.sc()
        self._tag = f"millpond-stream-{uuid.uuid4().hex}"
        self._properties = self._task_properties(df)
        with self._as_our_job():
            # Runs the query up to its last stage when adaptive execution has to look at it first.
            self._rdd: Any = cast("Any", df._jdf).toArrowBatchRdd(batch_rows, "UTC", False, False)
            self._partitions: int = self._rdd.getNumPartitions()
            self._rdd.persist(self._jvm.org.apache.spark.storage.StorageLevel.DISK_ONLY())
        tags = getattr(getattr(self._jvm.scala.reflect, "ClassTag$"), "MODULE$")
        self._bytes_tag, self._any_tag = tags.Byte().wrap(), tags.Any()
        # `SparkEnv` can't be asked by py4j: listing its methods needs a class that isn't shipped.
        env_class = self._jvm.java.lang.Class.forName("org.apache.spark.SparkEnv")
        manager = env_class.getDeclaredField("blockManager")
        manager.setAccessible(True)
        self._manager: Any = manager.get(self._jsc.env())
        # Where the first wave starts: every core has a partition.
        self._width = max(1, context.defaultParallelism)

    def read(self, *, prefetch: bool) -> Generator[bytes]:
        """Every batch of every partition in order, each as an Arrow IPC message."""
        width = self._width
        wave, ahead = self._wave(0, width), None
        with contextlib.ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(1)) if prefetch else None
            stack.callback(self.cancel)  # runs first: the pool waits for the job that it runs
            while wave:
                if ahead is None:
                    self._write(wave)
                else:
                    ahead.result()
                following = self._wave(wave.stop, width)
                if pool is not None:
                    ahead = pool.submit(self._write, following)
                size = 0
                for partition in wave:
                    for frame in self._read_block(partition):
                        size += len(frame)
                        yield frame
                if size < _SMALL_WAVE_BYTES:
                    width *= 2
                wave = following

    def close(self) -> None:
        """Cancel what runs and drop the blocks; a JVM that is gone has nothing to drop."""
        with contextlib.suppress(Exception):
            self.cancel()
            self._rdd.unpersist(False)

    def cancel(self) -> None:
        """Stop our jobs, and no others."""
        with contextlib.suppress(Exception):
            self._jsc.cancelJobsWithTag(self._tag)

    def _wave(self, start: int, width: int) -> range:
        return range(start, min(start + width, self._partitions))

    def _write(self, wave: Sequence[int]) -> None:
        """Compute some partitions into blocks. The job's function is an empty Scala set: it is
        serialisable, takes the iterator and does not read it, and Spark has by then stored it."""
        if not wave:
            return
        nothing = self._jvm.PythonUtils.toSeq([]).toSet()
        with self._as_our_job():
            wanted = self._jvm.PythonUtils.toSeq(list(wave))
            self._jsc.runJob(self._rdd, nothing, wanted, self._any_tag)

    def _read_block(self, partition: int) -> Iterator[bytes]:
        block = self._jvm.org.apache.spark.storage.RDDBlockId(self._rdd.id(), partition)
        found = self._manager.get(block, self._bytes_tag)
        if not found.isDefined():
            # An executor was lost with its disk: Spark computes the partition again.
            self._write([partition])
            found = self._manager.get(block, self._bytes_tag)
        if not found.isDefined():
            raise EngineError(f"partition {partition} of the result was lost", engine="spark")
        complete = False
        try:
            served = self._jvm.PythonRDD.serveIterator(found.get().data(), "millpond-stream")
            yield from _frames(served)
            complete = True
        finally:
            # Who reads a block holds it until its end; one that is left early is let go here.
            if not complete:
                with contextlib.suppress(Exception):
                    nobody = getattr(self._manager, "releaseLock$default$2")()
                    self._manager.releaseLock(block, nobody)
        self._manager.master().removeBlock(block)

    @contextlib.contextmanager
    def _as_our_job(self) -> Iterator[None]:
        """Jobs of this thread carry our tag, and their tasks the session's SQL settings."""
        before = self._jsc.getLocalProperties()
        self._jsc.setLocalProperties(self._properties.clone())
        try:
            yield
        finally:
            self._jsc.setLocalProperties(before)

    def _task_properties(self, df: DataFrame) -> Any:
        """Spark's own actions hand the session's settings to the tasks; without that, code that
        looks them up in a task sees the defaults."""
        properties = self._jsc.getLocalProperties().clone()
        for name, value in df.sparkSession.conf.getAll.items():
            if name.startswith("spark.sql."):
                properties.setProperty(name, value)
        tags = [t for t in (properties.getProperty("spark.job.tags") or "").split(",") if t]
        properties.setProperty("spark.job.tags", ",".join([*tags, self._tag]))
        properties.setProperty("spark.job.interruptOnCancel", "true")
        return properties


def _frames(served: Any) -> Iterator[bytes]:
    """The length-prefixed messages of a socket that Spark serves; its error if it has one."""
    from pyspark.util import _create_local_socket

    stream, sock = _create_local_socket(served)
    try:
        while header := stream.read(_HEADER_BYTES):
            size = int.from_bytes(header, "big")
            frame = stream.read(size)
            if len(header) < _HEADER_BYTES or len(frame) < size:
                served[2].getResult()
                raise EngineError("the stream from Spark ended in the middle", engine="spark")
            yield frame
        # It also ends when the JVM fails between two messages: only this call tells.
        served[2].getResult()
    finally:
        with contextlib.suppress(OSError):
            stream.close()
        sock.close()
