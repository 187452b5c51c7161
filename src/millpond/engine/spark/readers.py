"""Spark's file readers with a given schema: nothing is listed, nothing is inferred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from millpond.engine.spark.api import is_classic
from millpond.engine.spark.locations import as_names
from millpond.engine.spark.nanos import in_micros, split_by_nanos
from millpond.engine.spark.partitions import read_partitioned
from millpond.engine.spark.required import are_there
from millpond.engine.spark.rows import union_all
from millpond.engine.spark.stored import renamed, split_by_ids, stored_schema
from millpond.engine.spark.types import to_spark
from millpond.engine.spark.verify import OPTION, check
from millpond.plan.stored_fields import is_renamed
from millpond.plan.types import LONG, NULL, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

    from millpond.engine.spark.context import Context
    from millpond.engine.spark.partitions import Partitions
    from millpond.plan.sources import CsvOptions, Format, OnError

_ROW_INDEX = "_tmp_metadata_row_index"
"""Spark's reader puts a row's position into a column of this name. Taken out of `_metadata`, it
would be boxed into a struct for each row."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A format, the columns that the files hold, and how a CSV file is written."""

    format: Format
    columns: Struct
    csv: CsvOptions
    strict: bool = False
    """Whether values that would only be converted are errors, too: see `Scan`."""
    on_error: OnError = "error"

    def read(
        self,
        paths: list[str],
        context: Context,
        *,
        metadata: Mapping[str, str] | None = None,
        partitions: Partitions | None = None,
    ) -> DataFrame:
        """The rows of these files, whose paths `locations.spark_path` gave.

        `metadata` adds columns: their names, and which of Spark's facts about the file they are.
        `partitions` adds the columns of their directories, for Parquet alone.
        """
        known = metadata or {}
        if self.format == "csv":
            from millpond.engine.spark.csv import read_csv

            return read_csv(self, paths, context, known)
        if self.format == "json":
            from millpond.engine.spark.jsonlines import read_json_lines

            return read_json_lines(self, paths, context, known)
        if self.strict:
            df = self._read_strictly(paths, context, known, partitions)
        else:
            df = _read_parquet(self, paths, context, known, partitions)
        required = Struct(tuple(field for field in self.columns if not field.nullable))
        return df.filter(are_there(required, paths, context)) if required.fields else df

    def _read_strictly(
        self,
        paths: list[str],
        context: Context,
        metadata: Mapping[str, str],
        partitions: Partitions | None,
    ) -> DataFrame:
        from millpond.engine.spark.stricttext import with_valid_texts

        file = context.hidden()
        df = _read_parquet(self, paths, context, {**metadata, file: "file_path"}, partitions)
        return with_valid_texts(df, self.columns, file, context).drop(file)


def reader(context: Context) -> DataFrameReader:
    """A reader; `as_names` makes paths that it takes as they are, brackets and stars included."""
    return context.session.read


def metadata_columns(df: DataFrame, metadata: Mapping[str, str]) -> list[Column]:
    """Spark's facts about each row's file, under these names."""
    return [_fact(df, fact).alias(name) for name, fact in metadata.items()]


def _fact(df: DataFrame, fact: str) -> Column:
    if fact == "row_index" and _ROW_INDEX in df.columns:
        return df[_ROW_INDEX]
    return df.metadataColumn("_metadata").getField(fact)


def _read_parquet(
    reading: Reading,
    paths: list[str],
    context: Context,
    metadata: Mapping[str, str],
    partitions: Partitions | None,
) -> DataFrame:
    if context.reads:
        check(paths, context.verify)
    # No file has a column of values that can only be null.
    stored = Struct(tuple(field for field in reading.columns if field.type != NULL))
    is_plain = len(stored) == len(reading.columns) and not metadata and not is_renamed(stored)
    added = () if partitions is None else partitions.columns.names
    members = []
    for by_id, held, part in _alike(paths, stored):
        asked = _Asked(held, by_id, "row_index" in metadata.values())
        if partitions is None:
            df = _reader_of(asked, context).parquet(*as_names(part))
        else:
            df = read_partitioned(asked.schema(), part, partitions, context)
        if not is_plain or held != stored:
            found = renamed(held, context, by_id=by_id)
            own = {
                f.name: in_micros(column, h.type, f.type, context).alias(f.name)
                for column, h, f in zip(found, held, stored, strict=True)
            }
            columns = [own.get(f.name, _null(f.name, context)) for f in reading.columns]
            df = df.select(*columns, *metadata_columns(df, metadata), *context.columns(added))
        members.append(df)
    return union_all(members)


class _Asked(NamedTuple):
    """What is asked of Parquet files."""

    columns: Struct
    by_id: bool
    with_positions: bool

    def schema(self) -> StructType:
        """The same for Spark."""
        found = stored_schema(self.columns, by_id=self.by_id)
        return found.add(_ROW_INDEX, to_spark(LONG)) if self.with_positions else found


_KNOWN: Final[WeakKeyDictionary[SparkSession, dict[_Asked, Any]]] = WeakKeyDictionary()
"""Schemas that a session's JVM has read: those of many columns take a while, and six calls."""
_MOST_KNOWN: Final = 64


def _reader_of(asked: _Asked, context: Context) -> DataFrameReader:
    """A reader with this schema."""
    made: Any = reader(context).option(OPTION, context.verify != "none")
    session: Any = context.session
    if not is_classic(session):
        return made.schema(asked.schema())  # type: ignore[no-any-return]
    known = _KNOWN.setdefault(session, {})
    if asked not in known:
        if len(known) == _MOST_KNOWN:
            known.clear()
        text = asked.schema().json()
        known[asked] = session._jsparkSession.parseDataType(text)  # noqa: SLF001
    made._jreader = made._jreader.schema(known[asked])  # noqa: SLF001 - as `schema` does
    return made  # type: ignore[no-any-return]


def _alike(paths: list[str], stored: Struct) -> Iterator[tuple[bool, Struct, list[str]]]:
    """Files that one scan reads: whether by field ids, and with which types."""
    # Only Delta tables have other names, and they hold microseconds.
    if is_renamed(stored):
        for by_id, part in split_by_ids(paths, stored):
            yield by_id, stored, part
    else:
        for held, part in split_by_nanos(paths, stored):
            yield False, held, part


def _null(name: str, context: Context) -> Column:
    null: Column = context.functions.lit(None)
    return null.alias(name)
