"""Top-k: ties by position, keys before rows, row groups that can't hold a better row."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.settings import Settings
from millpond.engine.arrow import ArrowEngine, scan
from millpond.plan.expr import col, path
from millpond.plan.make import values

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 200
DATA = pa.table(
    {
        "id": list(range(ROWS)),
        "key": [random.Random(i).choice([1, 2, 3, None]) for i in range(ROWS)],
        "up": [{"v": i} for i in range(ROWS)],
        "wide": [f"{i}" * 10 for i in range(ROWS)],
    }
)


@pytest.mark.parametrize("count", [0, 1, 7, 60, 500])
@pytest.mark.parametrize("source", ["memory", "parquet", "projected"])
def test_ties_are_broken_by_position(count: Any, source: Any, run: Any, parquet: Any) -> None:
    plan = values(DATA) if source == "memory" else parquet(DATA, rows=9)
    if source == "projected":
        plan = plan.select("id", k2=col("key") * 2, key=col("key"))
    rows, _ = run(plan.top_k(count, col("key").desc()))
    expected = sorted(DATA.to_pylist(), key=lambda r: (r["key"] is None, -(r["key"] or 0)))
    assert [row["id"] for row in rows] == [row["id"] for row in expected[:count]]


def test_keys_are_decoded_first_and_rows_where_they_are(run: Any, parquet: Any) -> None:
    plan = parquet(DATA).filter(col("id") != 199).top_k(3, (col("id") % 50).desc(), "id")
    rows, counters = run(plan)
    assert [row["id"] for row in rows] == [49, 99, 149]
    assert rows[0]["wide"] == "49" * 10
    # 20 row groups for the keys, 3 again for the rows; all 4 leaves are read only there.
    assert counters.batches_decoded == 23
    assert counters.columns_decoded == 20 * 1 + 3 * 4


def test_row_groups_that_cant_be_better_are_skipped(run: Any, parquet: Any) -> None:
    scan = parquet(DATA)
    for key, best in ((path("up.v").asc(), [0, 1, 2]), (path("up.v").desc(), [199, 198, 197])):
        rows, counters = run(scan.top_k(3, key))
        assert [row["id"] for row in rows] == best
        assert counters.batches_pruned == 19
    rows, counters = run(
        scan.filter(col("id") < 150).select("wide", v=path("up.v")).top_k(3, col("v").desc())
    )
    assert [row["v"] for row in rows] == [149, 148, 147]
    assert counters.batches_pruned == 5 + 14


def test_looking_ahead_keeps_the_order_of_equal_rows(run: Any, parquet: Any) -> None:
    ties = pa.table({"k": [1] * 30 + [0] * 5 + [2] * 5, "id": list(range(40))})
    rows, _ = run(parquet(ties, rows=10).top_k(8, col("k").desc()))
    assert [row["id"] for row in rows] == [35, 36, 37, 38, 39, 0, 1, 2]
    same = pa.table({"k": [1] * 40, "id": list(range(40)), "w": ["x"] * 40})
    rows, _ = run(parquet(same, rows=10).top_k(12, "k"))
    assert [row["id"] for row in rows] == list(range(12))


def test_nothing_is_fetched_where_the_keys_are_all(run: Any, parquet: Any) -> None:
    _, counters = run(parquet(DATA).select("id", "key").top_k(3, col("key") + 0, "id"))
    assert (counters.files_opened, counters.batches_decoded) == (1, 20)


def test_more_than_the_buffer_holds_is_sorted(run: Any, parquet: Any) -> None:
    engine = ArrowEngine(settings=Settings.load(env={}, arrow_max_buffer_rows=50))
    for plan in (parquet(DATA), values(DATA)):
        top = plan.top_k(100, col("id").desc())
        assert "Sort id desc" in engine.explain(top)
        rows, counters = run(top, engine)
        assert [row["id"] for row in rows] == list(range(199, 99, -1))
        assert counters.spill_bytes > 0


def test_rows_near_a_row_groups_start_are_fetched_from_there(tmp_path: Path) -> None:
    count = 1000
    keys = [float(count - n) for n in range(count)]
    table = pa.table({"k": keys, "text": [f"t{n}" for n in range(count)]})
    pq.write_table(table, tmp_path / "a.parquet")
    plan = scan(tmp_path / "a.parquet").top_k(3, col("k").desc())
    run = ArrowEngine().execute(plan)
    assert pa.Table.from_batches(list(run)).to_pylist() == table.slice(0, 3).to_pylist()
    assert run.counters.rows_decoded == count + 3
