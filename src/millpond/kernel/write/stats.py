"""Statistics of a data file: how many rows, and the bounds and nulls of its first columns.

Bounds are never narrower than the data: long texts and times are cut to a prefix and to
milliseconds, upwards for the largest. A column in which a NaN was seen has no bounds; `nanCount`,
which is ours, tells that none was, so that the largest number can be trusted.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow.compute as pc

from millpond.kernel.write import exactjson
from millpond.plan import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from millpond.kernel.mapping import TableColumns

PREFIX: Final = 32
"""Texts in statistics have at most this many characters (one more in a maximum)."""
INDEXED: Final = 32
INDEXED_KEY: Final = "delta.dataSkippingNumIndexedCols"
COLUMNS_KEY: Final = "delta.dataSkippingStatsColumns"
_LAST: Final = "\U0010ffff"
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
_BOUNDED: Final = (
    *(t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.FLOAT, t.DOUBLE),
    *(t.STRING, t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ),
)
_PART: Final = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^`.,]*))\s*")

Path = tuple[str, ...]


class Leaf(NamedTuple):
    """A column, or a member of a struct, by the names that files have for it."""

    path: Path
    type: t.DataType

    @property
    def has_bounds(self) -> bool:
        """Whether statistics of its type have a smallest and a largest value."""
        return self.type in _BOUNDED or isinstance(self.type, t.Decimal)


def indexed_leaves(
    columns: TableColumns,
    partition_columns: Sequence[str],
    configuration: Mapping[str, str],
    always: Sequence[Path] = (),
) -> list[Leaf]:
    """The leaves that statistics are kept of, in order; some of them, or their members, always."""
    both = zip(columns.schema, columns.stored_schema(), strict=True)
    data = [pair for pair in both if pair[0].name not in partition_columns]
    leaves = list(_leaves(data, (), ()))
    named = configuration.get(COLUMNS_KEY)
    if named is not None:
        wanted = _names(named)
        return [
            leaf for name, leaf in leaves if _is_below(name, wanted) or _is_below(leaf.path, always)
        ]
    try:
        count = int(configuration.get(INDEXED_KEY, INDEXED))
    except ValueError:
        count = INDEXED
    found = [leaf for _, leaf in leaves]
    if count < 0:
        return found
    return found[:count] + [leaf for leaf in found[count:] if _is_below(leaf.path, always)]


def _is_below(path: Path, others: Sequence[Path]) -> bool:
    return any(path[: len(other)] == other for other in others)


def _leaves(
    pairs: Sequence[tuple[t.Field, t.Field]], above: Path, stored_above: Path
) -> Iterator[tuple[Path, Leaf]]:
    for logical, stored in pairs:
        here, there = (*above, logical.name), (*stored_above, stored.name)
        if isinstance(logical.type, t.Struct) and isinstance(stored.type, t.Struct):
            inner = list(zip(logical.type, stored.type, strict=True))
            yield from _leaves(inner, here, there)
        else:
            yield here, Leaf(there, logical.type)


def _names(text: str) -> list[Path]:
    """Names with commas between them; a part with a dot in it stands in backticks."""
    names: list[Path] = []
    parts: list[str] = []
    position = 0
    while position <= len(text):
        part = _PART.match(text, position)
        if part is None:
            break
        quoted, plain = part.groups()
        parts.append(plain.strip() if quoted is None else quoted.replace("``", "`"))
        position = part.end() + 1
        if part.end() >= len(text) or text[part.end()] != ".":
            names.append(tuple(parts))
            parts = []
    return names


@dataclass(slots=True)
class _Bounds:
    leaf: Leaf
    low: Any = None
    high: Any = None
    nulls: int = 0
    nans: int = 0
    is_known: bool = True
    """Whether the bounds hold: NaN and times outside of Python's have none."""

    def add(self, column: pa.Array) -> None:
        self.nulls += column.null_count
        if not self.leaf.has_bounds or column.null_count == len(column):
            return
        if t.is_fractional(self.leaf.type):
            self.nans += pc.sum(pc.is_nan(column)).as_py() or 0
            self.is_known = not self.nans
        if not self.is_known:
            return
        found = pc.min_max(column)
        try:
            low, high = found["min"].as_py(), found["max"].as_py()
        except (ValueError, OverflowError):
            self.is_known = False
            return
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)


@dataclass(slots=True)
class FileStatistics:
    """Gathers the statistics of one file, batch by batch."""

    leaves: Sequence[Leaf]
    rows: int = 0
    _found: list[_Bounds] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._found = [_Bounds(leaf) for leaf in self.leaves]

    def add(self, batch: pa.RecordBatch) -> None:
        """Rows with physical names."""
        self.rows += batch.num_rows
        for bounds in self._found:
            bounds.add(_column(batch, bounds.leaf.path))

    def to_json(self) -> str:
        """As `stats` of an add action."""
        low: dict[str, Any] = {}
        high: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        nans: dict[str, Any] = {}
        for bounds in self._found:
            path = bounds.leaf.path
            _put(nulls, path, bounds.nulls)
            if t.is_fractional(bounds.leaf.type):
                _put(nans, path, bounds.nans)
            if bounds.is_known and bounds.low is not None:
                _put(low, path, _lowest(bounds.low))
                _put(high, path, _highest(bounds.high))
        found = {"numRecords": self.rows, "minValues": low, "maxValues": high, "nullCount": nulls}
        if nans:
            found["nanCount"] = nans
        return exactjson.dumps({**found, "tightBounds": True})


def loosened(stats: str | None, rows: int) -> str:
    """Statistics of a file with a deletion vector: its bounds hold, but may be too wide."""
    try:
        found = exactjson.loads(stats) if stats else {}
    except (ValueError, RecursionError):
        found = {}
    known = found if isinstance(found, dict) else {}
    return exactjson.dumps({**known, "numRecords": rows, "tightBounds": False})


def record_count(add: Mapping[str, Any]) -> int | None:
    """How many live rows a file has by its statistics; None if they do not tell."""
    try:
        rows = exactjson.loads(add.get("stats") or "{}").get("numRecords")
    except (ValueError, AttributeError, RecursionError):
        return None
    if type(rows) is not int:
        return None
    return rows - int((add.get("deletionVector") or {}).get("cardinality") or 0)


def _column(batch: pa.RecordBatch, path: Path) -> pa.Array:
    array = batch.column(path[0])
    for name in path[1:]:
        # By its place: Arrow takes a name that begins with a dot for a path.
        array = pc.struct_field(array, array.type.get_field_index(name))
    return array


def _put(tree: dict[str, Any], path: Path, value: Any) -> None:
    if value is None:
        return
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _lowest(value: Any) -> Any:
    if isinstance(value, str):
        return value[:PREFIX]
    # Some readers take -0.0 for smaller than 0.0, and some for the same: this suits both.
    return -0.0 if isinstance(value, float) and value == 0 else _plain(value)


def _highest(value: Any) -> Any:
    if isinstance(value, str):
        return _cut_upwards(value)
    if isinstance(value, float) and value == 0:
        return 0.0
    if isinstance(value, dt.datetime) and value.microsecond % 1000:
        try:
            value += _MILLISECOND
        except OverflowError:
            return None
    return _plain(value)


def _cut_upwards(text: str) -> str:
    """A prefix and the last character there is: not smaller than any text that begins so."""
    end = PREFIX
    while text[end : end + 1] == _LAST:
        end += 1
    return text if len(text) <= end else text[:end] + _LAST


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return None
    if isinstance(value, dt.datetime):
        zone = "" if value.tzinfo is None else "Z"
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone
    return value.isoformat() if isinstance(value, dt.date) else value
