"""Work on Spark: all rows and columns go to its `noop` writer, which drops them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.digest import Digest
from bench.measure import Work

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame


def on_spark(frame: Callable[[], DataFrame]) -> Work:
    """The rows of a DataFrame that is made anew in every run."""

    def run() -> None:
        frame().write.format("noop").mode("overwrite").save()

    def digest() -> Digest:
        table: Any = frame().toArrow()
        return Digest.of(table.to_batches())

    return Work(run, digest)
