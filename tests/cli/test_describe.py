"""`pond describe`: every kind of node, for people and as JSON, and nothing is read for it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.steward.temporal.bounds import set_bounds

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.calls import Cli


@pytest.fixture
def full(cli: Cli, place: Path) -> Cli:
    with mp.open(place).write() as tx:
        tx.make_directory("/d")
        tx.append_series("/s", [{"time": at(1), "n": 1}, {"time": at(3), "n": 2}])
        tx.write_table("/d/t", [{"deep": {"a": [1]}, "Temp.°C": 1.5}])
        tx.write_bytes("/d/f", b"hello")
        tx.write_bytes("/log", b"one", series=True)
        tx.make_link("/link", "d/f")
        tx.make_link("/broken", "nowhere")
        tx.commit()
    with mp.open(place).write() as tx:
        tx.append_series("/s", [{"time": at(9), "n": 3, "new": "x"}])
        tx.write_bytes("/log", b" two", series=True)
        set_bounds(tx, ["/s"], last=at(5))
        tx.commit()
    return cli


def at(day: int) -> datetime:
    return datetime(2024, 5, day, tzinfo=UTC)


def test_series(full: Cli) -> None:
    found = full.json("describe", "/s")
    assert (found["type"], found["version"], found["txn_seq"]) == ("series", 2, 2)
    assert found["versions"]["count"] == 2
    assert found["columns"] == [
        {"name": "time", "type": "timestamp", "nullable": True},
        {"name": "n", "type": "long", "nullable": True},
        {"name": "new", "type": "string", "nullable": True},
    ]
    assert found["time"] == {
        "column": "time",
        "first": "2024-05-01T00:00:00+00:00",
        "last": "2024-05-09T00:00:00+00:00",
        "min_bound": None,
        "max_bound": "2024-05-05T00:00:00+00:00",
    }
    delta = found["delta"]
    assert (delta["rows"], delta["files"], delta["partitioned_by"]) == (3, 2, [])
    assert delta["location"].endswith(found["node_id"])
    assert delta["version"] >= 1


def test_versions(full: Cli) -> None:
    for args in (("/s@v1",), ("/s", "--version", "1")):
        found = full.json("describe", *args)
        assert found["time"]["last"] == "2024-05-03T00:00:00+00:00"
        assert found["delta"]["rows"] == 2
        assert len(found["columns"]) == 2
    assert full.json("describe", "/s", "--as-of", "1")["version"] == 1
    full.fails("describe", "/s@v7", code=6)


def test_files_directories_and_links(full: Cli) -> None:
    file = full.json("describe", "/d/f")
    assert (file["type"], file["size"], len(file["blake3"])) == ("data", 5, 64)
    assert full.json("describe", "/log")["size"] == 7
    directory = full.json("describe", "/d")
    assert (directory["entries"], directory["kinds"]) == (2, {"data": 1, "table": 1})
    assert full.json("describe", "/")["entries"] == 5
    assert full.json("describe", "/link")["leads_to"] == "/d/f"
    broken = full.json("describe", "/broken")
    assert (broken["target"], broken["leads_to"]) == ("nowhere", None)


def test_patterns_and_several(full: Cli) -> None:
    found = full.json("describe", "/d/*")
    assert [each["path"] for each in found] == ["/d/f", "/d/t"]
    assert [each["type"] for each in full.json("describe", "/", "/s")] == ["directory", "series"]
    full.fails("describe", "/x*", code=6)


def test_for_people(full: Cli) -> None:
    text = full.ok("describe", "/s", "/d/t")
    for part in (
        "type            series",
        "time column     time",
        "time max bound  2024-05-05 00:00:00",
        "delta rows      3",
        "column  type       null",
        "Temp.°C",
        "struct<a: list<long>>",
    ):
        assert part in text
    assert "time min bound" not in text


def test_files_of_this_machine(cli: Cli, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "a.parquet")
    found = cli.json("describe", "host+parquet://./a.parquet")
    assert (found["type"], found["files"], found["rows"]) == ("parquet", 1, 2)
    (tmp_path / "a.csv").write_text("a,b\n1,x\n")
    found = cli.json("describe", "host+csv://./a.csv")
    assert [column["type"] for column in found["columns"]] == ["long", "string"]
    assert cli.json("describe", "./a.csv")["size"] == 8
    table = cli.json("describe", f"host+delta://{tmp_path}/pond/data")
    assert table["delta"]["partitioned_by"] == ["part_id"]
    cli.fails("describe", "host+csv://./nope.csv", code=6)


def test_no_rows_are_read(full: Cli, place: Path) -> None:
    for file in (place / "tables").rglob("*.parquet"):
        file.unlink()
    assert full.json("describe", "/s")["delta"]["rows"] == 3
