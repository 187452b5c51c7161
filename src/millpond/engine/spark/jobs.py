"""The Spark jobs of one run: they carry a tag of their own, by which they are found and stopped."""

from __future__ import annotations

import contextlib
import threading
import uuid
from typing import TYPE_CHECKING, Any

from millpond.base.errors import RunCancelledError
from millpond.engine.spark.api import is_classic
from millpond.engine.spark.interrupts import held_interrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_AGAIN_SECONDS = 0.05


class Jobs:
    """What a run does in Spark. `cancel` stops it, from any thread."""

    def __init__(self, session: SparkSession) -> None:
        self.tag = f"millpond-run-{uuid.uuid4().hex}"
        self._session: Any = session
        self._cancelled = threading.Event()
        self._idle = threading.Event()
        self._idle.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether the run was told to stop."""
        return self._cancelled.is_set()

    @contextlib.contextmanager
    def started_here(self) -> Iterator[None]:
        """Jobs that this thread starts in the block are the run's, and Ctrl-C cancels them."""
        with held_interrupt(self.cancel):
            self._add_tag()
            self._idle.clear()
            try:
                if self.is_cancelled:  # while nothing ran, so nothing was there to stop
                    raise RunCancelledError("spark")
                yield
            finally:
                self._idle.set()
                with contextlib.suppress(Exception):  # the JVM may be gone
                    self._remove_tag()

    def cancel(self) -> None:
        """Stop the run's jobs; does not wait for their end."""
        self._cancelled.set()
        # In a thread of its own, since this one's line to the JVM may be waiting for the job.
        threading.Thread(target=self._stop, name="millpond-spark-cancel", daemon=True).start()

    def _stop(self) -> None:
        with contextlib.suppress(Exception):  # a JVM that is gone runs no job
            self._cancel_tagged()
            # Between two stages of a query there is no job to stop, and then there is one again.
            while not self._idle.wait(_AGAIN_SECONDS):
                self._cancel_tagged()

    def _cancel_tagged(self) -> None:
        if is_classic(self._session):
            self._session.sparkContext.cancelJobsWithTag(self.tag)
        else:
            self._session.interruptTag(self.tag)

    def _add_tag(self) -> None:
        if is_classic(self._session):
            self._session.sparkContext.addJobTag(self.tag)
        else:
            self._session.addTag(self.tag)

    def _remove_tag(self) -> None:
        if is_classic(self._session):
            self._session.sparkContext.removeJobTag(self.tag)
        else:
            self._session.removeTag(self.tag)
