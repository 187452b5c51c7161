"""The cost model: documented numbers, better ones where statistics exist, and honest ignorance."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from millpond.plan import aggregates as agg
from millpond.plan.bind import bind_predicate
from millpond.plan.cost import estimate, estimate_nodes, expression_cost, selectivity
from millpond.plan.expr import Expr, col, element, lit, path
from millpond.plan.make import list_files, sql, stored, values
from millpond.plan.sources import ColumnStats, DynamicScan, File, Scan
from millpond.plan.types import DATE, DOUBLE, LONG, STRING, TIMESTAMP, List, Struct

SCHEMA = Struct.of(
    a=LONG, b=LONG, f=DOUBLE, s=STRING, d=DATE, t=TIMESTAMP, v=List(LONG), o=Struct.of(x=LONG)
)


def share(predicate: Expr, *stats: ColumnStats) -> float:
    return selectivity(bind_predicate(predicate, SCHEMA), {item.path: item for item in stats})


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("a") == 1, 0.1),
        (col("a") > 1, 0.3),
        (col("a") != 1, 0.9),
        (col("a").is_null(), 0.1),
        (col("a").is_not_null(), 0.9),
        (col("s").contains("x"), 0.2),
        (col("s").like("x%"), 0.2),
        (col("a").isin([1, 2, 3]), 0.3),
        ((col("a") == 1) & (col("b") > 1), 0.03),
        ((col("a") == 1) | (col("b") == 1), 0.19),
        (~(col("a") == 1), 0.9),
        (col("v").len() == 1, 0.1),
        (lit(True), 1.0),
        (lit(None), 0.0),
        (col("a").cast(STRING).cast(LONG) == col("b"), 0.1),
    ],
    ids=lambda given: str(given),
)
def test_selectivity_without_statistics(predicate: Expr, expected: float) -> None:
    assert share(predicate) == pytest.approx(expected)


def test_lists_have_four_elements() -> None:
    assert share(col("v").any(element() == 1)) == pytest.approx(1 - 0.9**4)
    assert share(col("v").all(element() == 1)) == pytest.approx(0.1**4)


@pytest.mark.parametrize(
    ("predicate", "stats", "expected"),
    [
        (col("a") > 75, ColumnStats("a", min=0, max=100), 0.25),
        (lit(75) < col("a"), ColumnStats("a", min=0, max=100), 0.25),
        (col("a") <= 75, ColumnStats("a", min=0, max=100), 0.75),
        (col("a") > 75, ColumnStats("a", min=0, max=100, null_fraction=0.5), 0.125),
        (col("a") > 200, ColumnStats("a", min=0, max=100), 0.0),
        (col("a") == 200, ColumnStats("a", min=0, max=100), 0.0),
        (col("a") == 20, ColumnStats("a", distinct=50), 0.02),
        (col("a") != 20, ColumnStats("a", distinct=50), 0.98),
        (col("a").is_null(), ColumnStats("a", null_fraction=0.7), 0.7),
        (col("a").same_as(None), ColumnStats("a", null_fraction=0.7), 0.7),
        (path("o.x") < 10, ColumnStats("o.x", min=0, max=40), 0.25),
        (
            col("d") >= dt.date(2024, 1, 31),
            ColumnStats("d", min=dt.date(2024, 1, 1), max=dt.date(2024, 2, 10)),
            0.25,
        ),
        (
            col("t") < dt.datetime(2024, 1, 2, tzinfo=dt.UTC),
            ColumnStats(
                "t",
                min=dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
                max=dt.datetime(2024, 1, 5, tzinfo=dt.UTC),
            ),
            0.25,
        ),
        (col("s") > "m", ColumnStats("s", min="a", max="z"), 0.3),
    ],
    ids=lambda given: str(given),
)
def test_selectivity_with_statistics(predicate: Expr, stats: ColumnStats, expected: float) -> None:
    assert share(predicate, stats) == pytest.approx(expected)


def scan(*files: File, stats: tuple[ColumnStats, ...] = (), columns: Struct = SCHEMA) -> Scan:
    return Scan("parquet", files, columns, stats=stats)


def test_rows_of_files_are_known_or_follow_from_their_size() -> None:
    assert estimate(scan(File("f", 10, 100), File("g", 10, 50))).rows == 150
    assert estimate(scan(File("f", 8_000), columns=Struct.of(a=LONG))).rows == 4_000
    assert estimate(scan(File("f", 10, 100), File("g"))).rows is None


@pytest.mark.parametrize(
    "plan",
    [
        scan(File("nowhere")),
        stored("/x", SCHEMA),
        list_files("/x"),
        sql("SELECT 1 AS a", schema=Struct.of(a=LONG)),
        stored("/x", SCHEMA).filter(col("a") > 1).sort("a"),
        values([{"a": 1}]).union(stored("/x", Struct.of(a=LONG))),
    ],
    ids=lambda plan: plan.kind,
)
def test_what_is_unknown_stays_unknown(plan: Any) -> None:
    found = estimate(plan)
    assert found.rows is None
    assert found.total_cost is None


def test_files_that_rows_name_are_estimated_by_all_their_bytes() -> None:
    named = values([{"path": "a.parquet"}, {"path": "b.parquet"}])
    columns = Struct.of(n=LONG)
    unknown, known = (
        estimate_nodes(DynamicScan(named, "parquet", columns, expected_bytes=size))[-1]
        for size in (None, 8_000_000)
    )
    assert (unknown.rows, unknown.bytes_read) == (None, None)
    same = estimate_nodes(Scan("parquet", (File("a", size=8_000_000),), columns))[-1]
    assert (known.rows, known.bytes_read) == (same.rows, same.bytes_read)
    assert known.files == 2


def test_a_limit_over_the_unknown_is_known() -> None:
    assert estimate(stored("/x", SCHEMA).filter(col("a") > 1).head(7)).rows == 7
    assert estimate(stored("/x", SCHEMA).aggregate(n=agg.count())).rows == 1


def test_rows_through_nodes() -> None:
    base = scan(File("f", 10**6, 1000), stats=(ColumnStats("a", min=0, max=9, distinct=10),))
    other = values([{"k": n} for n in range(50)])
    assert estimate(base.filter(col("a") == 1)).rows == 100
    assert estimate(base.select(z=col("a")).filter(col("z") == 1)).rows == 100
    assert estimate(base.aggregate("a", n=agg.count())).rows == 10
    assert estimate(base.aggregate("b", n=agg.count())).rows == 100
    assert estimate(base.union(base)).rows == 2000
    assert estimate(base.join(other, on=[("a", "k")])).rows == 1000
    assert estimate(base.join(other, on=[("a", "k")], how="semi")).rows == 500
    assert estimate(base.sample(fraction=0.25, seed=1)).rows == 250
    assert estimate(base.take([3, 4])).rows == 2
    assert estimate(base.tail(3)).rows == 3


def test_fewer_columns_are_fewer_bytes() -> None:
    wide = scan(File("f", 10**9, 1000))
    narrow = scan(File("f", 10**9, 1000), columns=Struct.of(a=LONG))
    assert estimate(narrow).bytes_read == 8_000
    assert (estimate(wide).bytes_read or 0) > 8_000


def test_a_limit_makes_what_streams_cheaper() -> None:
    base = scan(File("f", 10**9, 10**7))
    whole = estimate(base.filter(col("a") > 1)).total_cost
    few = estimate(base.filter(col("a") > 1).head(10)).total_cost
    sorted_few = estimate(base.sort("a").head(10)).total_cost
    assert whole is not None
    assert few is not None
    assert sorted_few is not None
    assert few < whole / 1000
    assert sorted_few > whole


def test_python_costs_more_than_kernels() -> None:
    vectorised = bind_predicate(col("a") > 1, SCHEMA)
    parsed = bind_predicate(col("s").parse_json(Struct.of(k=LONG)).is_null(), SCHEMA)
    assert expression_cost(vectorised) == 0.1
    assert expression_cost(parsed) == 1.1


def test_what_is_held() -> None:
    base = scan(File("f", 10**6, 1000), columns=Struct.of(a=LONG, b=LONG))
    assert estimate_nodes(base.sort("a"))[-1].held_bytes == 1000 * (16 + 8)
    assert estimate_nodes(base.filter(col("a") > 1))[-1].held_bytes == 0
    assert estimate_nodes(stored("/x", SCHEMA).sort("a"))[-1].held_bytes is None


def test_nothing_is_counted_twice_in_the_total() -> None:
    base = scan(File("f", 10**6, 1000))
    assert estimate(base.union(base)).files == 1


def test_a_conjunct_costs_only_where_those_before_it_hold() -> None:
    base = scan(File("f", 10**6, 1000))
    alone = estimate_nodes(base.filter(col("s").like("%x")))[-1].cpu_per_row
    after = estimate_nodes(base.filter((col("a") == 1) & col("s").like("%x")))[-1].cpu_per_row
    assert alone == 0.2
    assert after == pytest.approx(0.1 + 0.1 * 0.2)
