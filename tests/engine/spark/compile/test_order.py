"""Row order is part of a plan's meaning: sorts, positions, samples, windows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from millpond.base.errors import EvaluationError
from millpond.engine.spark import SparkEngine
from millpond.plan.expr import col, lit
from millpond.plan.make import sql, values
from millpond.plan.order import Sample, Shuffle
from millpond.plan.types import DOUBLE, LONG, Struct

pytestmark = pytest.mark.spark

NAN = float("nan")
ROWS = values([{"k": k, "v": v} for v, k in enumerate([2, 1, None, 2, 1, 3])])


def test_sorting_is_stable_with_nulls_last(run_rows: Any) -> None:
    assert run_rows(ROWS.sort("k")) == [(1, 1), (1, 4), (2, 0), (2, 3), (3, 5), (None, 2)]
    down = [(3, 5), (2, 0), (2, 3), (1, 1), (1, 4), (None, 2)]
    assert run_rows(ROWS.sort(col("k").desc())) == down
    first = run_rows(ROWS.sort(col("k").asc(nulls="first")).head(2))
    assert first == [(None, 2), (1, 1)]


def test_nan_is_the_largest_number(run_rows: Any) -> None:
    plan = values(
        [{"x": x} for x in (NAN, 1.0, None, float("inf"), -0.0, 0.0)], Struct.of(x=DOUBLE)
    )
    assert [str(x) for (x,) in run_rows(plan.sort("x"))] == [
        *("-0.0", "0.0", "1.0", "inf", "nan", "None"),
    ]


def test_top_k_is_the_head_of_the_sort(run_rows: Any) -> None:
    for n in (0, 3, 100):
        for key in (col("k").asc(), col("k").desc(nulls="first")):
            assert run_rows(ROWS.top_k(n, key)) == run_rows(ROWS.sort(key))[:n]


def test_head_tail_and_take(run_rows: Any) -> None:
    everything = run_rows(ROWS)
    assert run_rows(ROWS.head(2)) == everything[:2]
    assert run_rows(ROWS.head(0)) == []
    assert run_rows(ROWS.tail(2)) == everything[-2:]
    assert run_rows(ROWS.tail(99)) == everything
    assert run_rows(ROWS.take([4, 0, 4])) == [everything[4], everything[0], everything[4]]
    assert run_rows(ROWS.take([])) == []
    assert run_rows(ROWS.sort("k").tail(2).head(1)) == [(3, 5)]


def test_a_position_past_the_end_is_an_error(run_rows: Any) -> None:
    with pytest.raises(EvaluationError, match="6"):
        run_rows(ROWS.take([0, 6]))
    with pytest.raises(EvaluationError):
        run_rows(ROWS.take([0, 6]).select((col("v") * 0).alias("z")))


def test_samples_depend_on_seed_and_position_alone(run_rows: Any) -> None:
    few, many = values([{"x": x} for x in range(100)]), 100
    order = [x for (x,) in run_rows(Shuffle(few, seed=7))]
    assert sorted(order) == list(range(many))
    assert order != list(range(many))
    # Spark's xxhash64(7L, 0L) and so on, computed apart from the engine.
    assert order[:5] == EXPECTED_SHUFFLE
    assert [x for (x,) in run_rows(Sample(few, seed=7, n=5))] == sorted(order[:5])
    part = [x for (x,) in run_rows(Sample(few, seed=7, fraction=0.5))]
    assert part == sorted(part)
    assert 30 < len(part) < 70
    assert run_rows(Sample(few, seed=7, fraction=1.0)) == run_rows(few)
    assert run_rows(Sample(few, seed=7, fraction=0.0)) == []


def _xxhash64(values_: tuple[int, int]) -> int:
    """The reference: xxHash64 of a long, chained as Spark does."""
    mask, p1, p2 = (1 << 64) - 1, 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
    p3, p4, p5 = 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

    def rotate(x: int, bits: int) -> int:
        return ((x << bits) | (x >> (64 - bits))) & mask

    seed = 42
    for value in values_:
        h = (seed + p5 + 8) & mask
        h ^= (rotate(((value & mask) * p2) & mask, 31) * p1) & mask
        h = (rotate(h, 27) * p1 + p4) & mask
        h ^= h >> 33
        h = (h * p2) & mask
        h ^= h >> 29
        h = (h * p3) & mask
        h ^= h >> 32
        seed = h
    return seed - (1 << 64) if seed >> 63 else seed


EXPECTED_SHUFFLE = sorted(range(100), key=lambda x: (_xxhash64((7, x)), x))[:5]


def test_many_files_of_different_sizes_keep_their_order(run_rows: Any, scan_of: Any) -> None:
    tables, start = [], 0
    for size in (5, 900, 1, 0, 300, 7, 1200, 2):
        tables.append(pa.table({"x": pa.array(range(start, start + size), pa.int64())}))
        start += size
    few = scan_of(*tables)
    assert [x for (x,) in run_rows(few)] == list(range(start))
    assert [x for (x,) in run_rows(few.filter(col("x") % 7 == 3).tail(2))] == [
        x for x in range(start) if x % 7 == 3
    ][-2:]
    assert sorted(run_rows(few, ordered=False)) == [(x,) for x in range(start)]


def test_more_files_than_a_union_takes_keep_their_order(run_rows: Any, scan_of: Any) -> None:
    tables = [
        pa.table({"x": pa.array(range(i * 10, i * 10 + i % 4), pa.int64())}) for i in range(40)
    ]
    plan = scan_of(*tables)
    expected = [x for i in range(40) for x in range(i * 10, i * 10 + i % 4)]
    assert [x for (x,) in run_rows(plan)] == expected
    assert [x for (x,) in run_rows(plan.filter(col("x") > 100).head(4))] == [
        x for x in expected if x > 100
    ][:4]


def test_splits_of_one_file_keep_their_order(run_rows: Any, scan_of: Any, spark: Any) -> None:
    plan = scan_of(pa.table({"x": pa.array(range(20_000), pa.int64())}), row_group_size=500)
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "20000")
    try:
        assert [x for (x,) in run_rows(plan)] == list(range(20_000))
        assert [x for (x,) in run_rows(plan.tail(3))] == [19_997, 19_998, 19_999]
        assert [x for (x,) in run_rows(plan.take([19_999, 0]))] == [19_999, 0]
        assert [x for (x,) in run_rows(plan.head(15_000).tail(1))] == [14_999]
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)


def test_unions_keep_the_order_of_their_inputs_in_a_session_of_others(spark: Any) -> None:
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.unionOutputPartitioning", "true")  # as Spark has it by default
    theirs.conf.set("spark.sql.adaptive.enabled", "false")
    text = "SELECT k, count(*) AS n FROM t GROUP BY k"
    grouped = sql(text, schema=Struct.of(k=LONG, n=LONG), t=values([{"k": k} for k in range(40)]))
    plan = grouped.with_columns(input=lit(1)).union(grouped.with_columns(input=lit(2)))
    batches = SparkEngine(theirs).execute(plan)
    found = [number for batch in batches for number in batch.column("input").to_pylist()]
    assert found == [1] * 40 + [2] * 40


def test_windows(run_rows: Any) -> None:
    plan = ROWS.window("rn", "row_number", partition_by=["k"])
    plan = plan.window("rank", "rank", order_by=["k"]).window("dense", "dense_rank", order_by=["k"])
    plan = plan.window("lag", "lag", "v").window("lead", "lead", "v", offset=2)
    plan = plan.window("sum", "sum", "v", order_by=[col("k").desc()])
    plan = plan.window("mean", "mean", "v", rows=(-1, 1)).window("n", "count", rows=(None, None))
    plan = plan.window("first", "first_value", "k", partition_by=["k"], rows=(0, 0))
    assert run_rows(plan) == [
        (2, 0, 1, 3, 2, None, 2, 5, 0.5, 6, 2),
        (1, 1, 1, 1, 1, 0, 3, 9, 1.0, 6, 1),
        (None, 2, 1, 6, 4, 1, 4, 15, 2.0, 6, None),
        (2, 3, 2, 3, 2, 2, 5, 8, 3.0, 6, 2),
        (1, 4, 2, 1, 1, 3, None, 13, 4.0, 6, 1),
        (3, 5, 1, 5, 3, 4, None, 5, 4.5, 6, 3),
    ]


def test_rank_without_an_order_ties_all_rows(run_rows: Any) -> None:
    assert run_rows(ROWS.window("r", "rank").select("r")) == [(1,)] * 6


def test_an_order_that_nobody_looks_at_costs_nothing(engine: Any) -> None:
    sorted_rows = ROWS.sort("k").select("v")
    plan = engine.to_dataframe(sorted_rows)
    assert "Sort" not in plan._jdf.queryExecution().executedPlan().toString()
    assert engine.to_dataframe(sorted_rows, ordered=True).columns == ["v"]


def test_filters_and_heads_in_long_chains(run_rows: Any) -> None:
    plan = values([{"x": 1}, {"x": 2}], Struct.of(x=LONG))
    for number in range(400):
        plan = (
            plan.filter(col("x") != -number) if number % 2 else plan.filter(col("x") < 10 + number)
        )
    for _ in range(1500):
        plan = plan.head(1).head(5).select("x").select(col("x"))
    assert run_rows(plan) == [(1,)]
