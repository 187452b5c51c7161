"""`parquet`: files that are their own images, unless they are packed or tiny."""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, ClassVar, Final, NamedTuple

from millpond.base.errors import SourceError
from millpond.plan import types as t
from millpond.plan.arrow import from_arrow_schema
from millpond.provider.formats.arrow import closing, seekable
from millpond.provider.formats.format import Format, Options, Parsed

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow.parquet as pq

    from millpond.provider.formats.format import Source

MAGIC: Final = b"PAR1"
_MICROS: Final[dict[str, Callable[[int], int]]] = {
    "s": lambda raw: raw * 1_000_000,
    "ms": lambda raw: raw * 1000,
    "us": lambda raw: raw,
    "ns": lambda raw: raw // 1000,
}


class ParquetOptions(Options):
    """There are none."""


class Parquet(Format[ParquetOptions]):
    """Apache Parquet."""

    options = ParquetOptions
    summary: ClassVar[str] = "Apache Parquet"
    guesses: ClassVar[bool] = False
    is_image: ClassVar[bool] = True

    def parse(self, source: Source, options: ParquetOptions) -> Parsed:
        """The rows, row group by row group."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        del options
        stream = seekable(source)
        try:
            check_parquet(source.name, stream)
            file = pq.ParquetFile(pa.PythonFile(stream, mode="r"))
        except BaseException:
            stream.close()
            raise
        return Parsed(file.schema_arrow, closing(stream, file.iter_batches()))


class Footer(NamedTuple):
    """What the end of a file says."""

    columns: t.Struct
    rows: int
    times: dict[str, tuple[int, int]]
    """The first and last time of columns that are times, in microseconds, where it says so."""


def read_footer(name: str, stream: IO[bytes]) -> Footer:
    """The columns, rows and times of a file; no rows are read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_parquet(name, stream)
    file = pq.ParquetFile(pa.PythonFile(stream, mode="r"))
    fields = (t.Field(f.name, f.type) for f in from_arrow_schema(file.schema_arrow))
    times = {
        field.name: found
        for field in file.schema_arrow
        if pa.types.is_timestamp(field.type)
        and (found := _times(file.metadata, field.name, field.type.unit)) is not None
    }
    return Footer(t.Struct(tuple(fields)), file.metadata.num_rows, times)


def _times(metadata: pq.FileMetaData, name: str, unit: str) -> tuple[int, int] | None:
    names = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    found: list[int] = []
    for group in range(metadata.num_row_groups):
        column = metadata.row_group(group).column(names.index(name))
        schema = metadata.schema.column(names.index(name))
        # Where both contradict each other, pyarrow would end the process for its statistics.
        if not column.physical_type == schema.physical_type == "INT64":
            return None
        statistics = column.statistics
        if statistics is None or not statistics.has_min_max:
            return None
        # Rounded down at both ends; the last one may be up to a microsecond later.
        found += [
            _MICROS[unit](statistics.min_raw), _MICROS[unit](statistics.max_raw) + (unit == "ns")
        ]  # fmt: skip
    return (min(found), max(found)) if found else None


def check_parquet(name: str, stream: IO[bytes]) -> None:
    """Raise unless bytes are Parquet, by the first and last of them."""
    head = stream.read(4)
    size = stream.seek(0, io.SEEK_END)
    stream.seek(max(0, size - 4))
    tail = stream.read(4)
    stream.seek(0)
    if head == tail == MAGIC and size > 8:
        return
    what = "it is empty" if not size else f"it begins with {head!r} and ends with {tail!r}"
    if head == MAGIC and size > 8:
        what = "its end is missing, so it may not have been written to the end"
    raise SourceError(
        f"{name} is not Parquet: {what}", engine="arrow", path=name, hint=_other(name)
    )


def _other(name: str) -> str:
    """What it might be instead."""
    lower = name.lower()
    if ".csv" in lower or ".tsv" in lower:
        return "CSV is read by csv://"
    if ".json" in lower or ".ndjson" in lower:
        return "JSON lines are read by json://"
    return "CSV is read by csv://, JSON lines by json://, its bytes by its path alone"
