"""Statistics of a data file: how many rows, and the bounds and nulls of its first columns.

Bounds are never narrower than the data: long texts and times are cut to a prefix and to
milliseconds, upwards for the largest. A column in which a NaN was seen has no bounds; `nanCount`,
which is ours, tells that none was, so that the largest number can be trusted.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import dataclass, field
from decimal import Decimal as PyDecimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from millpond.plan import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PREFIX: Final = 32
"""Texts in statistics have at most this many characters (one more in a maximum)."""
INDEXED: Final = 32
INDEXED_KEY: Final = "delta.dataSkippingNumIndexedCols"
COLUMNS_KEY: Final = "delta.dataSkippingStatsColumns"
_LAST: Final = "\U0010ffff"
_BOUNDED: Final = (
    *(t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.FLOAT, t.DOUBLE),
    *(t.STRING, t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ),
)

Path = tuple[str, ...]


def indexed_leaves(
    schema: t.Struct, configuration: Mapping[str, str]
) -> list[tuple[Path, t.DataType]]:
    """The leaves of a physical schema that statistics are kept of, in order."""
    named = configuration.get(COLUMNS_KEY)
    leaves = list(_leaves(schema, ()))
    if named is not None:
        wanted = [tuple(_unquoted(part) for part in name.split(".")) for name in named.split(",")]
        return [leaf for leaf in leaves if any(leaf[0][: len(w)] == w for w in wanted)]
    try:
        count = int(configuration.get(INDEXED_KEY, INDEXED))
    except ValueError:
        count = INDEXED
    return leaves if count < 0 else leaves[:count]


def has_bounds(type_: t.DataType) -> bool:
    """Whether statistics of this type have a smallest and a largest value."""
    return type_ in _BOUNDED or isinstance(type_, t.Decimal)


def _unquoted(part: str) -> str:
    return part.strip().strip("`")


def _leaves(schema: t.Struct, above: Path) -> Iterator[tuple[Path, t.DataType]]:
    for item in schema:
        here = (*above, item.name)
        if isinstance(item.type, t.Struct):
            yield from _leaves(item.type, here)
        else:
            yield here, item.type


@dataclass(slots=True)
class _Leaf:
    path: Path
    type: t.DataType
    low: Any = None
    high: Any = None
    nulls: int = 0
    nans: int = 0
    has_bounds: bool = True

    def add(self, column: pa.Array) -> None:
        self.nulls += column.null_count
        if not has_bounds(self.type):
            self.has_bounds = False
        if column.null_count == len(column) or not (self.has_bounds or self.nans):
            return
        if t.is_fractional(self.type):
            self.nans += pc.sum(pc.is_nan(column)).as_py() or 0
            self.has_bounds = not self.nans
            if self.nans:
                return
        found = pc.min_max(column)
        low, high = found["min"].as_py(), found["max"].as_py()
        if low is not None:
            self.low = low if self.low is None else min(self.low, low)
            self.high = high if self.high is None else max(self.high, high)


@dataclass(slots=True)
class FileStatistics:
    """Gathers the statistics of one file, batch by batch."""

    leaves: Sequence[tuple[Path, t.DataType]]
    rows: int = 0
    _found: list[_Leaf] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._found = [_Leaf(path, type_) for path, type_ in self.leaves]

    def add(self, batch: pa.RecordBatch) -> None:
        """Rows with physical names."""
        self.rows += batch.num_rows
        for leaf in self._found:
            leaf.add(_column(batch, leaf.path))

    def to_json(self, *, tight: bool = True) -> str:
        """As `stats` of an add action."""
        low: dict[str, Any] = {}
        high: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        nans: dict[str, Any] = {}
        for leaf in self._found:
            _put(nulls, leaf.path, leaf.nulls)
            if t.is_fractional(leaf.type):
                _put(nans, leaf.path, leaf.nans)
            if leaf.has_bounds and leaf.low is not None:
                least, most = _lowest(leaf.low), _highest(leaf.high)
                if least is not None and most is not None:
                    _put(low, leaf.path, least)
                    _put(high, leaf.path, most)
        found = {"numRecords": self.rows, "minValues": low, "maxValues": high, "nullCount": nulls}
        if nans:
            found["nanCount"] = nans
        return _dumps({**found, "tightBounds": tight})


def _dumps(value: Any) -> str:
    """JSON whose decimals are numbers with all their digits."""
    marks: dict[str, str] = {}

    def plain(item: Any) -> Any:
        if isinstance(item, dict):
            return {name: plain(member) for name, member in item.items()}
        if isinstance(item, PyDecimal):
            mark = f"\x00{len(marks)}\x00"
            marks[json.dumps(mark)] = format(item, "f")
            return mark
        return item

    text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))
    for mark, digits in marks.items():
        text = text.replace(mark, digits)
    return text


def _column(batch: pa.RecordBatch, path: Path) -> pa.Array:
    array = batch.column(path[0])
    for name in path[1:]:
        array = pc.struct_field(array, name)
    return array


def _put(tree: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _lowest(value: Any) -> Any:
    if isinstance(value, str):
        return value[:PREFIX]
    return _plain(value)


def _highest(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= PREFIX else value[:PREFIX] + _LAST
    if isinstance(value, dt.datetime) and value.microsecond % 1000:
        try:
            value += dt.timedelta(milliseconds=1)
        except OverflowError:
            return None
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return None
    if isinstance(value, dt.datetime):
        millis = value.microsecond // 1000
        text = value.strftime("%Y-%m-%dT%H:%M:%S") if value.year >= 1000 else None
        zone = "" if value.tzinfo is None else "Z"
        return None if text is None else f"{text}.{millis:03d}{zone}"
    if isinstance(value, dt.date):
        return value.isoformat()
    return value
