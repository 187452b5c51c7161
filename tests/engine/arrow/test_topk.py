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
from millpond.plan.types import LONG, STRING, List, Struct

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
_THREE = pa.schema({"k": pa.int64(), "m": pa.int64(), "id": pa.int64()})


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


def test_other_keys_are_decoded_where_the_first_leaves_it_open(run: Any, parquet: Any) -> None:
    plan = parquet(DATA).top_k(3, (path("up.v") % 50).desc(), (col("id") * -1).desc())
    rows, counters = run(plan)
    assert [row["id"] for row in rows] == [49, 99, 149]
    # Of 4 row groups that hold a finalist, none certain to win, `id` is decoded; 3 give their rows.
    assert counters.batches_decoded == 20 + 4 + 3
    assert counters.columns_decoded == 20 + 4 + 3 * 4


def test_keys_and_rows_of_certain_winners_are_one_decode(run: Any, parquet: Any) -> None:
    plan = parquet(DATA).top_k(3, (path("up.v") % 150).desc(), "id")
    rows, counters = run(plan)
    assert [row["id"] for row in rows] == [149, 148, 147]
    assert counters.batches_decoded == 20 + 1
    assert counters.columns_decoded == 20 + 4


def test_many_equal_first_keys_are_not_all_held(run: Any, parquet: Any) -> None:
    count = 50_000
    table = pa.table(
        {"k": [n % 2 for n in range(count)], "n": [n * 7919 % count for n in range(count)]}
    )
    plan = parquet(table.append_column("w", table["n"]), rows=1000).top_k(5, col("k").desc(), "n")
    rows, counters = run(plan)
    odd = sorted(table["n"].to_pylist()[1::2])
    assert [(row["k"], row["n"], row["w"]) for row in rows] == [(1, n, n) for n in odd[:5]]
    assert counters.peak_buffer_rows < 6000


@pytest.mark.parametrize("gathered", [1, 20, 4096])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("different", [1, 4, 40, 1000])
def test_several_keys_over_files_are_as_if_sorted(
    different: Any,
    descending: Any,
    nulls_first: Any,
    gathered: Any,
    run: Any,
    parquet: Any,
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr("millpond.engine.arrow.best._FEWEST_GATHERED", gathered)
    chance = random.Random(different)
    keys = [*range(different), None]
    data = [
        {"k": chance.choice(keys), "m": chance.choice([1, 2, None]), "id": n} for n in range(150)
    ]
    parts = (data[:70], data[70:73], data[73:])
    scan = parquet(*(pa.Table.from_pylist(part, _THREE) for part in parts), rows=8)
    nulls: Any = "first" if nulls_first else "last"
    first = col("k").desc(nulls=nulls) if descending else col("k").asc(nulls=nulls)
    sign = -1 if descending else 1

    def order(row: Any) -> Any:
        null = row["k"] is None
        second = (row["m"] is None, row["m"] or 0)
        return (null != nulls_first, 0 if null else sign * row["k"], second)

    expected = sorted(data, key=order)
    for count in (1, 3, 10, 149, 200):
        rows, _ = run(scan.top_k(count, first, "m"))
        assert rows == expected[:count]
        rows, _ = run(scan.filter(col("id") % 3 != 0).top_k(count, first, "m"))
        assert rows == [row for row in expected if row["id"] % 3][:count]


def test_a_row_group_that_was_looked_at_first_gives_the_rows_that_meet_all_conditions(
    run: Any, parquet: Any
) -> None:
    """Conditions on two members of a struct, the second read only where the first holds."""
    rows = [{"k": i, "s": {"a": 1 if i < 130 else 2, "b": 7}} for i in range(ROWS)]
    file = parquet(pa.Table.from_pylist(rows), rows=100)
    for plan in (
        file.filter((path("s.a") == 1) & (path("s.b") >= 1)),
        file.filter(path("s.a") == 1).filter(path("s.b") >= 1),
    ):
        found, _ = run(plan.top_k(500, col("k").desc()))
        assert [row["k"] for row in found] == list(range(129, -1, -1))


def test_a_row_group_with_deleted_rows_that_was_looked_at_first(run: Any, tmp_path: Path) -> None:
    rows = [{"k": i, "s": {"a": 1 if i < 130 else 2, "k": i}} for i in range(ROWS)]
    file = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), file, row_group_size=100)
    columns = Struct.of(k=LONG, s=Struct.of(a=LONG, k=LONG))
    given = Struct.of(path=STRING, gone=List(LONG))
    named = values([{"path": str(file), "gone": [125, 150]}], given)
    plan = named.dynamic_scan(columns, deleted="gone").filter(path("s.a") == 1)
    found, _ = run(plan.top_k(6, path("s.k").desc()))
    assert [row["k"] for row in found] == [129, 128, 127, 126, 124, 123]


@pytest.mark.parametrize("key", ["at", "day"])
def test_times_that_python_has_none_for(run: Any, parquet: Any, key: str) -> None:
    years = pa.array([n * 100 * 366 * 86_400_000_000 for n in range(ROWS)], pa.int64())
    days = pa.array([n * 36_600 for n in range(ROWS)], pa.int32())
    table = {"id": list(range(ROWS)), "at": years.cast(pa.timestamp("us", "UTC"))}
    file = parquet(pa.table({**table, "day": days.cast(pa.date32())}), rows=50)
    found, _ = run(file.top_k(3, col(key).desc()).select("id"))
    assert [row["id"] for row in found] == [199, 198, 197]
