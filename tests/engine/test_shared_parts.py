"""Expressions that mention parts of themselves over and over: a small graph, an endless tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.base.errors import EngineError
from millpond.plan.bind import bind
from millpond.plan.cost.expressions import expression_cost
from millpond.plan.optimizer.retype import retype
from millpond.plan.text import format_expr
from millpond.plan.tree import topological
from millpond.plan.types import LONG, STRING, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan

STEPS = 60


def score(steps: int = STEPS) -> Expr:
    """How many conditions hold, each step mentioning the one before twice."""
    total = mp.lit(0)
    for number in range(steps):
        total = mp.if_else(mp.col("a") > number, total + 1, total)
    return total


def parity() -> Expr:
    """Whether an odd number of conditions holds."""
    odd = mp.col("a") > 0
    for number in range(1, STEPS):
        other = mp.col("a") > number
        odd = (odd & ~other) | (~odd & other)
    return odd


@pytest.fixture(params=["values", "parquet"])
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> Plan:
    table = pa.table({"a": [17, 40, None], "b": ["x", "y", "z"]})
    if request.param == "values":
        return mp.values(table)
    pq.write_table(table, tmp_path / "t.parquet")
    return mp.scan(tmp_path / "t.parquet")


def test_they_are_computed(rows: Plan) -> None:
    for optimize in (True, False):
        found = rows.select(s=score()).to_arrow(engine="arrow", optimize=optimize)
        assert found["s"].to_pylist() == [17, 40, 0]
        kept = rows.filter(parity()).to_arrow(engine="arrow", optimize=optimize)
        assert kept["a"].to_pylist() == [17]


def test_they_are_shown_and_chosen_for(rows: Plan) -> None:
    plan = rows.select(s=score())
    assert len(repr(plan)) <= 210
    assert len(str(plan)) < 200_000
    assert "arrow: " in plan.explain(costs=True, steps=True)
    assert format_expr(score()).endswith("…")


def test_their_types_follow_a_narrower_schema() -> None:
    deep: Expr = mp.path("s.x")
    for _ in range(STEPS):
        deep = mp.if_else(mp.path("s").is_null(), deep + 1, deep)
    wide = Struct.of(s=Struct.of(x=LONG, y=STRING))
    narrow = Struct.of(s=Struct.of(x=LONG))
    made = retype(bind(deep, wide), narrow)
    assert made == bind(deep, narrow)
    assert len(topological(made)) <= len(topological(bind(deep, wide)))


def test_a_part_costs_once() -> None:
    schema = Struct.of(a=LONG)
    costs = [expression_cost(bind(score(steps), schema)) for steps in (10, 20, 30)]
    assert costs[2] - costs[1] == pytest.approx(costs[1] - costs[0])


@pytest.mark.spark
def test_spark_refuses_them_with_a_way_out(spark: object, rows: Plan) -> None:
    with pytest.raises(EngineError, match="over and over") as caught:
        rows.select(s=score()).to_arrow(engine="spark")
    assert "select() of its own" in str(caught.value.hint)
    found = rows.select("a", half=score(8))
    found = found.select(s=mp.col("half") + mp.col("half")).to_arrow(engine="spark")
    assert found["s"].to_pylist() == [16, 16, 0]
