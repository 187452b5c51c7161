"""Listings, files that rows name, and files in object stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.errors import SourceError
from millpond.base.store import open_store
from millpond.plan import types as t
from millpond.plan.expr import col, path
from millpond.plan.make import list_files, values
from millpond.plan.sources import File, Scan

DATA = pa.table({"id": list(range(100)), "s": [{"x": i} for i in range(100)]})
COLUMNS = t.Struct.of(id=t.LONG, s=t.Struct.of(x=t.LONG))


def put(address: str, name: str, table: pa.Table = DATA) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=10)
    open_store(address).put(name, sink.getvalue().to_pybytes(), mode="overwrite")


def test_a_listing_is_sorted_and_flat(run: Any, tmp_path: Path) -> None:
    for name in ("b", "a", "c.json", "sub/inner", "ab"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    rows, _ = run(list_files(str(tmp_path)))
    assert [row["path"] for row in rows] == [f"{tmp_path}/{n}" for n in ("a", "ab", "b", "c.json")]
    assert rows[3]["size"] == 6
    assert rows[0]["modified"] is not None
    for start, names in (("ab", ["ab", "b", "c.json"]), ("abc", ["b", "c.json"]), ("d", [])):
        found, _ = run(list_files(f"{tmp_path}/", start_from=start))
        assert [Path(row["path"]).name for row in found] == names


def test_a_listing_in_a_store_can_be_scanned(run: Any) -> None:
    address = "memory://listing"
    for name in ("t/1.parquet", "t/2.parquet", "t/deep/3.parquet", "u.parquet"):
        put(address, name)
    listing = list_files(f"{address}/t")
    assert [row["path"] for row in run(listing)[0]] == [f"{address}/t/{n}.parquet" for n in "12"]
    rows, counters = run(listing.dynamic_scan(COLUMNS).filter(path("s.x") >= 98).select("id"))
    assert [row["id"] for row in rows] == [98, 99, 98, 99]
    assert (counters.files_opened, counters.batches_pruned) == (2, 18)


def test_objects_are_read_by_range(run: Any) -> None:
    wide = DATA.append_column("w", pa.array([f"{i}" * 500 for i in range(100)]))
    put("memory://ranges", "x.parquet", wide)
    scan = Scan("parquet", (File("memory://ranges/x.parquet"),), COLUMNS)
    rows, counters = run(scan.take([55]))
    assert rows == [{"id": 55, "s": {"x": 55}}]
    assert counters.bytes_read < 1_000
    with pytest.raises(SourceError, match=r"no file memory://ranges/y\.parquet"):
        run(Scan("parquet", (File("memory://ranges/y.parquet"),), COLUMNS))


def test_files_that_rows_name(run: Any, tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(DATA, tmp_path / f"{number}.parquet", row_group_size=10)
    rows_ = pa.table(
        {
            "path": [f"{tmp_path}/{n}.parquet" for n in (2, 0, 1)],
            "day": ["x", None, "y"],
            "gone": pa.array([[0, 5, 10, 99], None, list(range(100))], pa.list_(pa.int64())),
        }
    )
    columns = t.Struct((*COLUMNS.fields, t.Field("day", t.STRING)))
    plan = values(rows_).dynamic_scan(columns, constants=["day"], deleted="gone")
    rows, counters = run(plan)
    kept = [i for i in range(100) if i not in (0, 5, 10, 99)]
    assert [(r["id"], r["day"]) for r in rows] == [(i, "x") for i in kept] + [
        (i, None) for i in range(100)
    ]
    rows, counters = run(plan.filter(col("day") == "x").filter(col("id") < 12).select("id"))
    assert [row["id"] for row in rows] == [i for i in kept if i < 12]
    assert (counters.files_opened, counters.files_pruned, counters.batches_decoded) == (1, 2, 2)
    assert [row["id"] for row in run(plan.head(3))[0]] == [1, 2, 3]


def test_a_row_without_a_path_is_an_error(run: Any) -> None:
    nameless = values(pa.table({"path": pa.array([None], pa.string())}))
    with pytest.raises(SourceError, match="names no file"):
        run(nameless.dynamic_scan(COLUMNS))


def test_json_files_that_rows_name(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\n{"id": 2}\n')
    named = values(pa.table({"path": [str(tmp_path / "a.json")], "v": [7]}))
    plan = named.dynamic_scan(t.Struct.of(id=t.LONG, v=t.LONG), format="json", constants=["v"])
    assert run(plan)[0] == [{"id": 1, "v": 7}, {"id": 2, "v": 7}]
