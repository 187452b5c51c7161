"""The tiny engine's nodes: rows in the order that docs/expressions.md says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.tiny.engine import BATCH_ROWS, TinyEngine, TinyPlans
from tests.engine.tiny.values import civil, days_from, hashed

from millpond.base.errors import EvaluationError, UnsupportedExpressionError, UnsupportedNodeError
from millpond.plan import aggregates as agg
from millpond.plan import types as t
from millpond.plan.counters import collect_stats
from millpond.plan.expr import Expr, col
from millpond.plan.make import list_files, stored, values
from millpond.testing.engine.parts import FirstOfKey, RunningSum

if TYPE_CHECKING:
    from millpond.plan.node import Plan

NAN = math.nan
P = values(
    [
        {"k": "b", "n": 3, "x": NAN},
        {"k": None, "n": 1, "x": 1.0},
        {"k": "a", "n": None, "x": -0.0},
        {"k": "b", "n": 2, "x": None},
        {"k": "a", "n": 5, "x": 0.0},
    ]
)


def rows(plan: Plan) -> list[tuple[Any, ...]]:
    table = plan.to_arrow(engine=TinyEngine(), optimize=False)
    return [tuple(row.values()) for row in table.to_pylist()]


def ns(plan: Plan) -> list[Any]:
    return [row[0] for row in rows(plan.select("n"))]


def test_rows_keep_their_order() -> None:
    assert ns(P) == [3, 1, None, 2, 5]
    assert ns(P.filter(col("n") > 1)) == [3, 2, 5]
    assert ns(P.head(2)) == [3, 1]
    assert ns(P.tail(2)) == [2, 5]
    assert ns(P.tail(0)) == []
    assert ns(P.tail(99)) == [3, 1, None, 2, 5]
    assert ns(P.take([4, 0, 4])) == [5, 3, 5]
    assert ns(P.head(1).union(P.tail(1), P.head(1))) == [3, 5, 3]
    assert ns(P.filter_ordered(FirstOfKey("k"))) == [3, 1, None]
    with pytest.raises(EvaluationError, match="there is no row 5"):
        rows(P.take([5]))


def test_sorting_is_stable_nulls_last_nan_largest() -> None:
    assert ns(P.sort("n")) == [1, 2, 3, 5, None]
    assert ns(P.sort(col("n").desc())) == [5, 3, 2, 1, None]
    assert ns(P.sort(col("n").asc(nulls="first"))) == [None, 1, 2, 3, 5]
    assert ns(P.sort(col("n").desc(nulls="first"))) == [None, 5, 3, 2, 1]
    assert ns(P.sort("x")) == [None, 5, 1, 3, 2]
    assert ns(P.sort(col("x").desc())) == [3, 1, None, 5, 2]
    assert ns(P.sort("k", col("n").desc())) == [5, None, 3, 2, 1]
    assert ns(P.top_k(2, "k")) == [None, 5]
    assert ns(P.top_k(0, "k")) == []


def test_groups_come_in_the_order_of_their_keys() -> None:
    plan = P.aggregate(
        "k", n=agg.count(), s=agg.sum("n"), lo=agg.min("x"), hi=agg.max("x"), f=agg.first("n")
    )
    found = rows(plan)
    assert [row[:3] for row in found] == [("a", 2, 5), ("b", 2, 5), (None, 1, 1)]
    assert [row[5] for row in found] == [None, 3, 1]
    assert math.isnan(found[1][4])
    real = rows(P.aggregate("x", n=agg.count(), d=agg.count_distinct("x")))
    assert [row[1:] for row in real] == [(2, 1), (1, 1), (1, 1), (1, 0)]
    assert math.copysign(1, real[0][0]) == 1


def test_no_keys_give_one_row_and_no_groups_none() -> None:
    none = P.filter(col("n") > 99)
    assert rows(none.aggregate(n=agg.count(), s=agg.sum("n"))) == [(0, None)]
    assert rows(none.aggregate("k", n=agg.count())) == []
    assert rows(P.aggregate(n=agg.count("n", where=col("n") > 1), m=agg.mean("n"))) == [(3, 2.75)]
    with pytest.raises(EvaluationError):
        rows(P.select(n=col("n") + (2**63 - 6)).aggregate(s=agg.sum("n")))


def test_joins_keep_the_left_order_then_the_right() -> None:
    right = values(
        [{"k": "a", "z": 1}, {"k": "b", "z": 2}, {"k": "a", "z": 3}, {"k": None, "z": 4}]
    )
    left = P.select("k", "n")
    assert rows(left.join(right, on="k")) == [
        *(("b", 3, 2), ("a", None, 1), ("a", None, 3), ("b", 2, 2), ("a", 5, 1), ("a", 5, 3))
    ]
    assert rows(left.join(right, on="k", how="left"))[1] == (None, 1, None)
    assert rows(left.join(right, on="k", how="full"))[-1] == (None, None, 4)
    assert rows(left.join(right, on="k", how="anti")) == [(None, 1)]
    assert len(rows(left.join(right, on="k", how="semi"))) == 4
    assert (None, 1, 4) in rows(left.join(right, on="k", nulls_equal=True))
    zeros = P.select(a=col("x")).join(P.select(b=col("x")), on=[("a", "b")])
    assert len(rows(zeros)) == 1 + 1 + 4  # NaN finds NaN, 1.0 itself, both zeros each other


def test_chance_is_what_the_page_says() -> None:
    # What Spark answers to SELECT xxhash64(7L, 0L), xxhash64(-3L, 1L).
    assert hashed(7, 0) == -4457042067931036189
    assert hashed(-3, 1) == 7961336095677748257
    order = sorted(range(5), key=lambda at: hashed(42, at))
    assert ns(P.shuffle(seed=42)) == [ns(P)[at] for at in order]
    assert ns(P.sample(2, seed=42)) == [ns(P)[at] for at in sorted(order[:2])]
    assert ns(P.sample(fraction=1, seed=1)) == ns(P)
    assert ns(P.sample(fraction=0, seed=1)) == []


def test_the_calendar_has_no_end() -> None:
    for days in (-1_000_000, -719_163, -1, 0, 59, 11_016, 2_932_897, 10**8):
        assert days_from(*civil(days)) == days
    assert civil(0) == (1970, 1, 1)
    assert civil(11_016) == (2000, 2, 29)


def test_what_it_does_not_declare_is_refused() -> None:
    with pytest.raises(UnsupportedNodeError, match="the tiny engine does not run ListFiles"):
        TinyEngine().execute(list_files("/a"))
    with pytest.raises(UnsupportedNodeError, match="does not run StatefulFunction"):
        TinyEngine().execute(P.stateful("t", RunningSum(), "n"))
    with pytest.raises(UnsupportedExpressionError, match="does not evaluate parse_json"):
        TinyEngine().execute(P.select(j=col("k").parse_json(t.List(t.LONG))))


def test_a_run_has_a_schema_before_its_rows_and_can_be_closed() -> None:
    many = values([{"a": n} for n in range(BATCH_ROWS + 1)])
    with collect_stats() as seen:
        run = TinyEngine().execute(many)
        assert run.schema.names == ["a"]
        assert run.observations() == ()
        assert next(run).num_rows == BATCH_ROWS
    assert [(o.name, o.rows) for o in run.observations()] == [("Values", BATCH_ROWS + 1)]
    run.close()
    run.close()
    assert list(run) == []
    assert seen.rows_emitted == BATCH_ROWS
    assert [batch.num_rows for batch in TinyEngine().execute_parallel(many)] == [BATCH_ROWS, 1]
    assert list(TinyEngine().execute(P.head(0))) == []


def test_shared_nodes_are_computed_once() -> None:
    plan: Plan = P.head(1)
    for _ in range(12):
        plan = plan.union(plan)
    assert TinyEngine().explain(plan).splitlines() == ["Values", "Head", *["Union"] * 12]
    assert len(rows(plan)) == 2**12


def test_long_chains_run() -> None:
    plan: Plan = P
    for _ in range(10_000):
        plan = plan.head(4)
    assert len(rows(plan)) == 4
    expr: Expr = col("n")
    for _ in range(2_000):
        expr = expr + 1
    assert ns(P.select(n=expr).head(1)) == [2003]


def test_stored_paths_are_resolved() -> None:
    class Scope:
        def resolve(self, stored: object) -> Plan:
            return P

    plan = stored("/p", P.schema).head(1)
    table = plan.to_arrow(engine=TinyEngine(), scope=Scope(), optimize=False)
    assert table.column("n").to_pylist() == [3]


def test_it_sees_the_plan_through_the_visitors_alone() -> None:
    """Its modules import none of the plan's classes, which is the proof's whole point."""
    import ast
    from pathlib import Path

    allowed = {"visitor", "executor", "counters", "node"}
    folder = Path(__file__).parent
    for file in folder.glob("*.py"):
        if file.name.startswith("test_"):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("millpond.plan"):
                assert (node.module or "").split(".")[2] in allowed, f"{file.name}: {node.module}"
    assert TinyPlans.engine == "tiny"
