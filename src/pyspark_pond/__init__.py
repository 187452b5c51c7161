"""Ponds for Spark: `spark.read.format("pond").option("pond", place).load("/path")`.

Spark finds a package named like this one by itself, nothing has to be registered. Rows are read in
Spark's Python workers, file by file, through the Arrow engine. `pond["/path"].to_spark(spark)` is
faster: it compiles to Spark's own Parquet scans, and is the way for computed paths that need Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

OPTIONS = ("pond", "path", "asof", "timestart", "timeend")


@dataclass(frozen=True)
class Wanted:
    """What is read; plain values, since it goes to Spark's workers."""

    pond: str
    path: str
    txn_seq: int
    start: int | None
    end: int | None


class Part(InputPartition):
    """Some pieces of the rows, by their numbers."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(tuple(numbers))


class DefaultSource(DataSource):
    """The format `pond`."""

    @classmethod
    def name(cls) -> str:
        """What `format(...)` calls it."""
        return "pond"

    def schema(self) -> StructType:
        """The columns of the path."""
        from millpond.engine.spark.types import to_spark_schema

        return to_spark_schema(_rows(self._wanted).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """What reads it."""
        return Reader(self._wanted, schema.names)

    @property
    def _wanted(self) -> Wanted:
        from datetime import datetime

        import millpond as mp
        from millpond.base.errors import ConfigError
        from millpond.fs.entry import to_micros
        from millpond.steward.temporal.times import in_utc

        given = {str(name).lower(): value for name, value in self.options.items()}
        for name in given:
            if name not in OPTIONS:
                raise ConfigError(f"the format pond has no option {name!r}",
                                  hint="pond, asOf, timeStart, timeEnd")  # fmt: skip
        for name, hint in (("pond", '.option("pond", place)'), ("path", '.load("/path")')):
            if not given.get(name):
                raise ConfigError(f"it is not said which {name} is meant", hint=hint)
        if not given["path"].startswith("/"):
            raise ConfigError(f"the format pond reads one path of a pond, not {given['path']}",
                              hint="patterns and URLs: pond.sql(...) in Python")  # fmt: skip
        as_of = given.get("asof")
        moment: Any = as_of
        if as_of is not None:
            moment = int(as_of) if as_of.isdigit() else datetime.fromisoformat(as_of)
        times = (given.get("timestart"), given.get("timeend"))
        start, end = (
            None if time is None else to_micros(in_utc(datetime.fromisoformat(time)))
            for time in times
        )
        scope = mp.open(given["pond"]).read(as_of=moment)
        return Wanted(given["pond"], given["path"], scope.txn_seq, start, end)


class Reader(DataSourceReader):
    """Reads one path, at the transaction that was the last one when it was asked for."""

    def __init__(self, wanted: Wanted, names: Sequence[str]) -> None:
        self.wanted = wanted
        self.names = tuple(names)

    def partitions(self) -> Sequence[Part]:
        """A task for each group of files, about as large as Spark's own."""
        from millpond.provider.rows import Asked

        asked = Asked(self.wanted.start, self.wanted.end)
        groups: list[list[int]] = []
        size = 0
        for number, piece in enumerate(_rows(self.wanted).pieces()):
            if not asked.overlaps(piece.first, piece.last):
                continue
            if not groups or size + piece.size > 128 << 20:
                groups.append([])
                size = 0
            groups[-1].append(number)
            size += piece.size
        return [Part(numbers) for numbers in groups] or [Part(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one group."""
        from millpond.provider.rows import Asked
        from millpond.provider.times import in_range

        rows = _rows(self.wanted)
        numbers = set(partition.value)
        chosen = [piece for number, piece in enumerate(rows.pieces()) if number in numbers]
        if not chosen:
            return
        plan = rows.plan_of(chosen)
        asked = Asked(self.wanted.start, self.wanted.end)
        if not asked.is_all and rows.time_column is not None:
            plan = in_range(plan, rows.time_column, asked)
        yield from plan.select(*self.names).execute(engine="arrow")


def _rows(wanted: Wanted) -> Any:
    import millpond as mp

    return mp.open(wanted.pond).read(as_of=wanted.txn_seq).derivation.rows(wanted.path)
