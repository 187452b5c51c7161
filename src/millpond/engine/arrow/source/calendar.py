"""Old dates and timestamps of files that Spark wrote by the calendar of its older versions.

Up to October 4th, 1582 those count by the Julian calendar, and say so in the footer: what they
show as 0001-01-01 is two days earlier by the calendar of everybody else. Spark shifts them when it
reads them, and so does this. Wall clocks (`timestamp_ntz`) were never written that way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from millpond.base.errors import SourceError
from millpond.engine.arrow.source.conform import from_zero
from millpond.engine.arrow.source.files import ENGINE
from millpond.engine.arrow.source.leaves import leaf_count_of
from millpond.plan.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, types_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from millpond.engine.arrow.source.bounds import Bounds
    from millpond.plan.types import DataType, Struct

_VERSION, _ZONE = b"org.apache.spark.version", b"org.apache.spark.timeZone"
_OLD_TIMES, _OLD_INT96 = b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"
_SWITCH_DAY = -141_427
"""October 15th, 1582, which followed October 4th."""
_YEAR_1900 = -25_567
"""From this day on no zone's clock differs between Java's two ways to know zones."""
_UTC = frozenset({"UTC", "Z", "GMT", "Etc/UTC", "Etc/GMT", "UCT", "Zulu", "+00:00"})
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_JULIAN_START, _START = 719_470, 719_468
"""Days from March 1st of the year 0 to 1970-01-01, in each of both calendars."""


@dataclass(frozen=True, slots=True)
class OldCalendar:
    """Which of a file's times are to be shifted, and the zone in which they were written."""

    path: str
    times: bool
    int96: bool
    zone: str
    wanted: frozenset[DataType]
    """As which types they are read: Spark leaves INT96 alone that is read as a wall clock."""

    @classmethod
    def of(cls, metadata: pq.FileMetaData, path: str, columns: Struct | None) -> OldCalendar | None:
        """What a footer says; None for a file by the calendar of everybody else."""
        notes = metadata.metadata or {}
        version = notes.get(_VERSION)
        if version is None:
            return None
        times = version < b"3.0.0" or _OLD_TIMES in notes
        int96 = version < b"3.1.0" or _OLD_INT96 in notes
        if not times and not int96:
            return None
        zone = notes.get(_ZONE, b"UTC").decode(errors="replace")
        wanted = frozenset() if columns is None else frozenset(types_in(columns))
        return cls(path, times, int96, zone, wanted & {TIMESTAMP, TIMESTAMP_NTZ})

    def table(self, read: pa.Table, columns: Sequence[Any]) -> pa.Table:
        """What was read of some leaves, in the order of the file, with times as they should be."""
        leaves = iter(columns)
        arrays = []
        for name, column in zip(read.column_names, read.columns, strict=True):
            own = list(islice(leaves, leaf_count_of(column.type)))
            chunks = [self._array(chunk, own, name) for chunk in column.chunks]
            arrays.append(pa.chunked_array(chunks, type=column.type))
        return pa.Table.from_arrays(arrays, schema=read.schema)

    def bounds(self, found: Bounds, type_: DataType) -> Bounds:
        """Limits of statistics, but for those that are old themselves."""
        if type_ == DATE:
            first = _SWITCH_DAY
        elif type_ in (TIMESTAMP, TIMESTAMP_NTZ):  # a day may be read as midnight
            first = self._first_day * _PER_DAY["us"]
        else:
            return found
        low, high = (None if x is None or x < first else x for x in (found.low, found.high))
        return replace(found, low=low, high=high)

    def _array(self, array: pa.Array, leaves: list[Any], column: str) -> pa.Array:
        """An array with the times of its leaves shifted, which are so many as it has."""
        type_ = array.type
        if isinstance(type_, pa.BaseExtensionType) or not any(map(self._is_old, leaves)):
            return array
        if not at.is_nested(type_):
            return self._shifted(array, leaves[0], column)
        array = from_zero(array)
        if at.is_struct(type_):
            parts = [array.field(i) for i in range(type_.num_fields)]
        elif at.is_map(type_):
            parts = [array.keys, array.items]
        else:
            parts = [array.values]
        left = iter(leaves)
        done = [
            self._array(part, list(islice(left, leaf_count_of(part.type))), column)
            for part in parts
        ]
        if at.is_map(type_):
            entry = pa.struct([type_.key_field, type_.item_field])
            done = [pa.Array.from_buffers(entry, len(done[0]), [None], 0, children=done)]
        count = 1 if at.is_struct(type_) or at.is_fixed_size_list(type_) else 2
        buffers = array.buffers()[:count]
        return pa.Array.from_buffers(type_, len(array), buffers, array.null_count, children=done)

    def _is_old(self, leaf: Any) -> bool:
        if leaf.physical_type == "INT96":
            return self.int96
        return self.times and leaf.physical_type in ("INT32", "INT64")

    @property
    def _first_day(self) -> int:
        """From which day on timestamps are as they should be."""
        return _SWITCH_DAY if self.zone in _UTC else _YEAR_1900

    def _shifted(self, array: pa.Array, leaf: Any, column: str) -> pa.Array:
        type_, is_int96 = array.type, leaf.physical_type == "INT96"
        if at.is_date32(type_):
            per_day, first, whole = 1, _SWITCH_DAY, pa.int32()
        elif at.is_timestamp(type_) and (type_.tz or (is_int96 and TIMESTAMP in self.wanted)):
            per_day, first, whole = _PER_DAY[type_.unit], self._first_day, pa.int64()
        else:
            return array
        missing = np.asarray(array.is_null())
        values = np.asarray(array.view(whole).fill_null(0)).astype(np.int64)
        days, rest = np.divmod(values, per_day)
        is_old = days < first
        if not is_old.any():
            return array
        if at.is_timestamp(type_) and self.zone not in _UTC:
            raise self._refused(column, f"as of the zone {self.zone}, whose clocks Spark knows")
        if is_int96 and len(self.wanted) > 1:
            raise self._refused(column, "beside wall clocks that it wrote by today's")
        found = np.where(is_old, gregorian(days) * per_day + rest, values)
        return pa.array(found, mask=missing).cast(whole).view(type_)

    def _refused(self, column: str, why: str) -> SourceError:
        return SourceError(
            f"column {column} of {self.path} holds old timestamps that Spark wrote by its older "
            f"calendar, {why}",
            engine=ENGINE,
            path=self.path,
            hint='read the file with engine="spark"',
        )


def gregorian(days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Days that are called the same by our calendar as these are by the Julian one.

    The last day of February in a year that has it only there becomes March 1st.

    >>> gregorian(np.array([-719_164, -141_428])).astype("datetime64[D]").astype(str).tolist()
    ['0001-01-01', '1582-10-04']
    """
    # Years begin in March, so that what is added in some of them stands at their end.
    fours, rest = np.divmod(days + _JULIAN_START, 1461)
    year = np.minimum(rest // 365, 3)
    day, year = rest - 365 * year, year + 4 * fours
    found: NDArray[np.int64] = 365 * year + year // 4 - year // 100 + year // 400 + day - _START
    return found
