"""The second half of `make demo`: raw files become a joined series, averages and a page.

A small water utility gets CSV from an old gauge and its successor, JSON telemetry from a pump, and
Parquet from the mill. The data is made up. A day later more of it comes, and only that is computed.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import millpond as mp

if TYPE_CHECKING:
    from collections.abc import Mapping

START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
STEP = dt.timedelta(minutes=1)
DAY = 24 * 60
SWAPPED = START + dt.timedelta(days=10)
"""When the old gauge at the weir was exchanged."""

PAGE = """\
{% for input in inputs -%}
## {{ input.path }}
{{ input.schema | map(attribute="name") | join(", ") }}
{% for row in input.rows(limit=3) -%}
{{ row["timestamp"].date() }}  weir {{ "%.2f" | format(row["Weir.level.avg"]) }} m, \
pump {{ "%.0f" | format(row["Pump.watts.max"]) }} W
{% endfor %}{% endfor %}"""

NODES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "/derived/all": (
        "timeseries-join",
        {
            "inputs": [
                {
                    "pattern": "csv:///raw/gauge-old/*.csv",
                    "scope": "Weir",
                    "range": {"end": SWAPPED.isoformat()},
                },
                {
                    "pattern": "csv:///raw/gauge-new/*.csv?delimiter=;",
                    "scope": "Weir",
                    "range": {"begin": SWAPPED.isoformat()},
                },
                {"pattern": "json:///raw/pump/*.jsonl", "scope": "Pump"},
                {"pattern": "parquet:///raw/mill/*.parquet", "scope": "Mill"},
            ]
        },
    ),
    "/derived/reduced": (
        "temporal-reduce",
        {
            "in_pattern": "/derived/all",
            "out_pattern": "all",
            "resolutions": ["10m", "1h", "1d"],
            "aggregations": [
                {"type": "avg", "columns": ["Weir.level", "Mill.level"]},
                {"type": "max", "columns": ["Pump.watts"]},
                {"type": "count", "columns": ["Weir.level"]},
            ],
        },
    ),
    "/pages": (
        "template",
        {"in_pattern": "/derived/reduced/all/res=1d.series", "out_pattern": "week.md",
         "template": PAGE},
    ),
}  # fmt: skip


def level(minute: int, shift: float = 0.0) -> float:
    """A level of water, in metres."""
    return round(2 + math.sin(minute / 700 + shift) + 0.01 * (minute % 7), 4)


def gauge(minutes: range, delimiter: str) -> bytes:
    """What a gauge writes."""
    lines = [f"{(START + STEP * m).isoformat()}{delimiter}{level(m)}" for m in minutes]
    return "\n".join([f"timestamp{delimiter}level", *lines, ""]).encode()


def pump(minutes: range) -> bytes:
    """Telemetry: JSON lines."""
    return b"".join(
        json.dumps(
            {"timestamp": (START + STEP * m).isoformat(), "watts": max(0.0, level(m) - 2.5) * 900}
        ).encode()
        + b"\n"
        for m in minutes
    )


def mill(minutes: range) -> bytes:
    """A Parquet file."""
    times = pa.array([START + STEP * m for m in minutes], pa.timestamp("us", "UTC"))
    table = pa.table({"timestamp": times, "level": [level(m, 1.0) for m in minutes]})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def collect(pond: mp.Pond, day: int) -> None:
    """What has come on a day: four raw files, in one transaction."""
    minutes = range(day * DAY, (day + 1) * DAY)
    is_old = START + STEP * minutes.start < SWAPPED
    files = {
        f"gauge-{'old' if is_old else 'new'}/{day:02}.csv": gauge(minutes, "," if is_old else ";"),
        f"pump/{day:02}.jsonl": pump(minutes),
        f"mill/{day:02}.parquet": mill(minutes),
    }
    with pond.write(f"raw files of day {day}") as tx:
        for name, content in files.items():
            tx.make_directory(f"/raw/{name.partition('/')[0]}", parents=True)
            tx.write_bytes(f"/raw/{name}", content)
        tx.commit()


def read_all(pond: mp.Pond) -> tuple[int, int]:
    """Read every resolution; how many rows came out, and how many were read for it."""
    scope = pond.read()
    with mp.collect_stats() as seen:
        rows = [
            handle.to_arrow().num_rows for handle in scope["/"].glob("derived/reduced/**/*.series")
        ]
    return sum(rows), seen.rows_decoded


def show_pipeline(pond: mp.Pond, days: int = 21) -> bool:
    """Collect, join, reduce, render; then one more day."""
    for day in range(days):
        collect(pond, day)
    with pond.write("the pipeline") as tx:
        tx.make_directory("/derived")
        for path, (factory, config) in NODES.items():
            tx.make_factory(path, factory, config)
        tx.commit()
    rows, first = read_all(pond)
    print(f"{days} days of raw files: {rows:,} buckets at three resolutions, {first:,} rows read")
    again = read_all(pond)[1]
    print(f"once more: {again:,} rows read")
    collect(pond, days)
    rows, late = read_all(pond)
    print(
        f"a day later: {rows:,} buckets, {late:,} rows read ({late / first:.0%} of the first time)"
    )
    print()
    print(pond.read()["/pages/week.md"].read_bytes().decode())
    joined = pond["/derived/all"].to_arrow()
    is_whole = joined.column("Weir.level").null_count == 0
    print(f"{joined.num_rows:,} joined rows; the swapped gauge is one column: {is_whole}")
    return is_whole and late < first / 4 and joined.num_rows == (days + 1) * DAY
