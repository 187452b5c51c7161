"""Rows written by Spark itself, one Parquet file for each part of time: `execute_into`.

A join or a pivot groups rows by their time. Rows are exchanged once, by the part that they are in:
then each task has all rows of its parts, groups them, and writes a file for each. Rows that came
here to be written would take longer to come than to be computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from millpond.base.errors import EngineError
from millpond.plan.lineage import source_column
from millpond.plan.parts import Parts
from millpond.plan.rows import Aggregate, Filter, Project
from millpond.plan.types import TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import Column

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.frame import Frame
    from millpond.plan.node import Plan


TASK_ROWS: Final = 1_500_000
"""About so many rows are grouped by a task: more of them may not fit into its memory."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The node that groups rows, and the key of it that is the time."""

    node: Aggregate
    key: str
    parts: Parts

    def start_of(self, time: Column, context: Context) -> Column:
        """When the part begins that a time is in."""
        f, parts = context.functions, self.parts
        at = f.unix_micros(time)
        width = f.when(at < parts.since, f.lit(parts.wide)).otherwise(f.lit(parts.narrow))
        start: Column = f.coalesce(at - f.pmod(at, width), f.lit(parts.last))
        return start.cast("bigint")

    @property
    def tasks(self) -> int:
        """How many have the rows of some parts each, so that what they group is in memory."""
        return max(1, round(self.parts.rows / TASK_ROWS))


def cut_of(plan: Plan, parts: Parts) -> Cut | None:
    """How the rows of a plan are cut while they are grouped; None if they are not grouped so."""
    node = plan
    while isinstance(node, Filter | Project):
        node = node.input
    if not isinstance(node, Aggregate):
        return None
    key = source_column(plan, parts.time, node)
    if key not in {each.name for each in node.keys} or node.schema.field(key).type != TIMESTAMP:
        return None
    return Cut(node, key, parts)


def write(frame: Frame, parts: Parts, context: Context) -> Iterator[pa.RecordBatch]:
    """Write the rows of a frame that was cut, and tell the files."""
    import pyarrow as pa

    part, *_ = frame.keys
    ordered = frame.df.sortWithinPartitions(*context.ascending(frame.keys))
    rows = ordered.select(*context.columns([*frame.schema.names, part]))
    place = Path(parts.directory) / "rows"
    writer = rows.write.partitionBy(part).option("compression", "zstd")
    writer.option("maxRecordsPerFile", 0).parquet(f"file:{place}")
    found = _files(place, f"{part}=")
    arrays = [pa.array(found.keys(), pa.int64()), pa.array(found.values(), pa.string())]
    yield pa.record_batch(arrays, schema=Parts.schema())


def _files(place: Path, prefix: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for folder in sorted(place.glob(f"{prefix}*")):
        files = list(folder.glob("*.parquet"))
        if len(files) != 1:
            raise EngineError(f"Spark wrote {len(files)} files for one part", engine="spark")
        found[int(folder.name.removeprefix(prefix))] = str(files[0])
    return found
