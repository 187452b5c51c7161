"""`oteljson`: metrics of OpenTelemetry as JSON lines, as a collector's file exporter writes them.

Gauges and sums become one wide table: a row for each time, a column for each metric, by its name.
Points have attributes. They are left away unless one metric has two points of one time that they
tell apart: then such a metric has a column for each set of attributes, `disk.free{device=sda}`.
With `attributes=always` every metric with attributes has; that does not depend on the data.
Histograms and summaries have no one value and are left out.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from millpond.provider.formats.format import Format, Options, Parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from millpond.provider.formats.format import Source

TIME: Final = "timestamp"
_NO_VALUE: Final = 1
"""A flag of points that say that there is nothing."""
_ROWS: Final = 16 * 1024
_LONGS: Final = 1 << 63
_HINT: Final = 'a line is an object with "resourceMetrics", as the file exporter writes it'


class OtelOptions(Options):
    """What columns are."""

    attributes: Literal["auto", "always"] = "auto"


class OtelJson(Format[OtelOptions]):
    """Metrics of OpenTelemetry."""

    options = OtelOptions
    summary: ClassVar[str] = "metrics of OpenTelemetry, a column for each"

    def parse(self, source: Source, options: OtelOptions) -> Parsed:
        """The rows, in the order of time: all points are held, in 20 bytes each."""
        import numpy as np
        import pyarrow as pa

        points = _Points()
        for number, line in _lines(source):
            points.add(source, number, line)
        if not points.times:
            raise source.failed("has no points of gauges or sums", hint=_HINT)
        times = np.frombuffer(points.times, np.int64)
        order = np.argsort(times, kind="stable")
        split = points.split(times, always=options.attributes == "always")
        names = [_column(metric, attributes, split) for metric, attributes in points.series]
        columns = list(dict.fromkeys(names))
        if TIME in columns:
            raise source.failed(
                f"has a metric {TIME!r}, which is the column of the time", hint="rename the metric"
            )
        where = np.array([columns.index(name) for name in names], np.int64)
        wholes = dict.fromkeys(columns, True)
        for name, is_whole in zip(names, points.wholes, strict=True):
            wholes[name] = wholes[name] and is_whole
        fields = [pa.field(n, pa.int64() if wholes[n] else pa.float64()) for n in columns]
        schema = pa.schema([pa.field(TIME, pa.timestamp("us", "UTC")), *fields])
        return Parsed(schema, _rows(schema, points, times[order], order, where))


class _Points:
    """All points, in parallel arrays; a series is a metric with attributes."""

    def __init__(self) -> None:
        self.times = array("q")
        self.of = array("i")
        self.floats = array("d")
        self.longs: dict[int, int] = {}
        """Whole numbers that a double does not hold, by the number of the point."""
        self.series: dict[tuple[str, str], int] = {}
        self.wholes: list[bool] = []

    def add(self, source: Source, number: int, line: Any) -> None:
        """The points of a line."""
        try:
            for metric, attributes, point in _points(line):
                if int(point.get("flags", 0)) & _NO_VALUE:
                    continue
                self._add(metric, attributes, int(point["timeUnixNano"]) // 1000, point)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"{type(error).__name__}: {error}"
            raise source.failed_line(number, f"is not OTLP: {said}", hint=_HINT) from error

    def _add(self, metric: str, attributes: str, micros: int, point: dict[str, Any]) -> None:
        is_whole = "asInt" in point
        value = int(point["asInt"]) if is_whole else float(point["asDouble"])
        if is_whole and not -_LONGS <= value < _LONGS:
            raise ValueError(f"{value} is no 64-bit number")
        series = self.series.setdefault((metric, attributes), len(self.series))
        if series == len(self.wholes):
            self.wholes.append(True)
        self.wholes[series] &= is_whole
        if is_whole and int(float(value)) != value:
            self.longs[len(self.times)] = int(value)
        self.times.append(micros)
        self.of.append(series)
        self.floats.append(value)

    def split(self, times: NDArray[np.int64], *, always: bool) -> set[str]:
        """The metrics whose attributes are part of their columns' names."""
        import numpy as np

        if always:
            return {metric for metric, attributes in self.series if attributes}
        numbers: dict[str, int] = {}
        metrics = [numbers.setdefault(metric, len(numbers)) for metric, _ in self.series]
        series = np.frombuffer(self.of, np.int32)
        metric = np.array(metrics, np.int64)[series]
        order = np.lexsort((series, metric, times))
        t, m, s = times[order], metric[order], series[order]
        twice = (t[1:] == t[:-1]) & (m[1:] == m[:-1]) & (s[1:] != s[:-1])
        found = set(m[1:][twice].tolist())
        return {name for name, number in numbers.items() if number in found}


def _points(line: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, attributes and point, of each gauge and each sum."""
    for resource in line["resourceMetrics"]:
        above = resource.get("resource", {}).get("attributes", [])
        for scope in resource.get("scopeMetrics", []):
            for metric in scope.get("metrics", []):
                data = metric.get("gauge") or metric.get("sum") or {}
                for point in data.get("dataPoints", []):
                    yield metric["name"], _shown([*above, *point.get("attributes", [])]), point


def _shown(attributes: list[dict[str, Any]]) -> str:
    """Attributes as text, in the order of their names.

    >>> _shown([{"key": "b", "value": {"intValue": "2"}}, {"key": "a", "value": {}}])
    'a=,b=2'
    """
    found = {each["key"]: next(iter(each.get("value", {}).values()), "") for each in attributes}
    return ",".join(f"{key}={found[key]}" for key in sorted(found))


def _column(metric: str, attributes: str, split: set[str]) -> str:
    return f"{metric}{{{attributes}}}" if metric in split and attributes else metric


def _rows(
    schema: pa.Schema,
    points: _Points,
    times: NDArray[np.int64],
    order: NDArray[np.int64],
    where: NDArray[np.int64],
) -> Iterator[pa.RecordBatch]:
    """A row for each time; of two points of one column and time, the later line counts."""
    import numpy as np
    import pyarrow as pa

    starts = np.flatnonzero(np.r_[True, times[1:] != times[:-1]])
    ends = np.r_[starts[1:], len(times)]
    columns = where[np.frombuffer(points.of, np.int32)]
    for first in range(0, len(starts), _ROWS):
        rows = slice(first, first + _ROWS)
        chosen = order[starts[rows][0] : ends[rows][-1]]
        row = np.repeat(np.arange(len(starts[rows])), ends[rows] - starts[rows])
        arrays = [pa.array(times[starts[rows]]).cast(schema.field(0).type)]
        for number, field in enumerate(list(schema)[1:]):
            mine = columns[chosen] == number
            values: list[Any] = [None] * len(starts[rows])
            is_whole = pa.types.is_integer(field.type)
            for at, point in zip(row[mine].tolist(), chosen[mine].tolist(), strict=True):
                value = points.floats[point]
                values[at] = points.longs.get(point, int(value)) if is_whole else value
            arrays.append(pa.array(values, field.type))
        yield pa.record_batch(arrays, schema=schema)


def _lines(source: Source) -> Iterator[tuple[int, Any]]:
    import msgspec

    for number, line in source.lines():
        if not line.strip():
            continue
        try:
            found = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise source.failed_line(number, f"is no JSON: {error}", hint=_HINT) from error
        except RecursionError as error:
            raise source.failed_line(number, "is nested too deeply", hint=_HINT) from error
        if not isinstance(found, dict) or "resourceMetrics" not in found:
            raise source.failed_line(number, "holds no metrics", hint=_HINT)
        yield number, found
