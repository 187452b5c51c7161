"""The ponds of the campaigns: a small one to read, and one with a bit of everything to damage."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import millpond as mp

if TYPE_CHECKING:
    from millpond.steward.pond import Pond

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
BLOB: Final = bytes(range(256)) * 400
"""Larger than what is stored in a row of the OpLog."""
LINES: Final = b"".join(b"%d,%d\n" % (number, number * number) for number in range(9000))


def readings(first: int, count: int, *, scale: float = 1.0) -> list[dict[str, Any]]:
    """Rows of a series, one each hour."""
    return [
        {"timestamp": START + timedelta(hours=hour), "level": hour * scale, "site": f"s{hour % 3}"}
        for hour in range(first, first + count)
    ]


def small_pond(location: str) -> Pond:
    """A pond with a few paths of each kind, for queries, URLs and configurations."""
    pond = mp.create(location)
    with pond.write() as tx:
        tx.make_directory("/raw")
        tx.make_directory("/in")
        tx.write_bytes("/raw/a.csv", b"n,v\n1,2.5\n2,3.5\n")
        tx.write_bytes("/raw/b.jsonl", b'{"n":1,"v":2.5}\n')
        numbers = [
            (None, 1, "a"),
            (1, 2, "b"),
            (5, 5, None),
            (-3, 9, "ü"),
            (9, -3, ""),
            (1, 2, "a"),
        ]
        tx.write_table("/numbers", [{"n": n, "m": m, "s": s} for n, m, s in numbers])
        tx.write_table("/t", [{"n": 1, "v": 0.5}])
        tx.append_series("/in/s", readings(0, 30))
        tx.append_series("/in/r", readings(5, 30, scale=0.5))
        tx.make_link("/link", "/in/s")
        tx.make_link("/loop", "/loop")
        tx.make_factory("/joined", "timeseries-join", _join("/in/s", "/in/r"))
        tx.make_factory("/reduced", "temporal-reduce", _reduce("series:///in/*"))
        tx.commit()
    return pond


def full_pond(location: str) -> Pond:
    """A pond with files, blobs, tables, series, links, computed paths, checkpoints and a cache."""
    pond = mp.create(location)
    with pond.write("first") as tx:
        tx.make_directory("/dir/sub", parents=True)
        tx.make_directory("/in")
        tx.write_bytes("/dir/note.txt", b"one")
        tx.write_bytes("/dir/sub/blob", BLOB)
        tx.write_bytes("/log", b"first\n", series=True)
        tx.write_bytes("/lines.csv", b"n,square\n" + LINES)
        tx.write_table("/table", [{"id": n, "name": f"n{n % 5}", "x": n / 4} for n in range(400)])
        tx.make_link("/link", "/dir/note.txt")
        tx.append_series("/in/a", readings(0, 40))
        tx.append_series("/in/b", readings(10, 40, scale=0.25))
        tx.commit()
    for number in range(1, 5):
        with pond.write(f"more {number}") as tx:
            tx.append_series("/in/a", readings(40 * number, 40))
            tx.write_bytes("/log", b"line %d\n" % number, series=True)
            tx.write_bytes("/dir/note.txt", b"version %d" % number)
            tx.commit()
    with pond.write("change") as tx:
        tx.write_table("/table", [{"id": n, "name": "new", "x": n * 1.5} for n in range(300)])
        tx.make_factory("/joined", "timeseries-join", _join("/in/a", "/in/b"))
        tx.make_factory("/reduced", "temporal-reduce", _reduce("series:///in/*"))
        tx.make_factory("/pivoted", "timeseries-pivot", {"pattern": "/in/*", "columns": ["level"]})
        tx.make_factory(
            "/queried",
            "sql-derived-table",
            {
                "patterns": {"a": "/in/a"},
                "query": "SELECT site, sum(level) AS total FROM a GROUP BY site",
            },
        )
        tx.commit()
    pond.maintain()  # checkpoints and compacted files beside the newer commits
    for number in range(2):
        with pond.write(f"late {number}") as tx:
            tx.append_series("/in/a", readings(400 + 40 * number, 40))
            tx.append_series("/in/b", readings(300 + 40 * number, 40, scale=0.25))
            tx.write_bytes(f"/dir/new{number}", b"new %d" % number)
            tx.commit()
    return pond


def _join(*paths: str) -> dict[str, Any]:
    return {"inputs": [{"pattern": path, "scope": path[-1]} for path in paths]}


def _reduce(pattern: str) -> dict[str, Any]:
    return {
        "in_pattern": pattern,
        "out_pattern": "$0",
        "resolutions": ["1h", "6h"],
        "aggregations": [
            {"type": "avg", "columns": ["level"]},
            {"type": "count", "columns": ["level"]},
        ],
    }
