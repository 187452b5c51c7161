"""Both engines, and a third one written against the visitor alone, give the same rows in order.

`make test-all` runs the Spark half a second time on two executor processes (`test_cluster.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.engine.tiny.engine import TinyEngine

from millpond.plan.codec import dumps, loads
from millpond.plan.make import values
from millpond.plan.node import NODES
from millpond.plan.optimizer import optimize
from millpond.plan.run import engine_named
from millpond.plan.sources import DynamicScan, ListFiles, Scan, Stored
from millpond.plan.tree import topological
from millpond.testing.engine import EngineParity, cases, parts
from millpond.testing.engine.compare import assert_same_outcome, outcome
from millpond.testing.engine.data import EDGES, edge_table
from millpond.testing.engine.strategies import plans

if TYPE_CHECKING:
    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan

SOURCES_WITH_TESTS_OF_THEIR_OWN = {Scan.kind, DynamicScan.kind, ListFiles.kind, Stored.kind}
"""They need files or a scope: `test_sources.py` runs them on both engines."""


@pytest.fixture(scope="module")
def spark_engine(spark: Any) -> Executor:
    from millpond.engine.spark import SparkEngine

    return SparkEngine(spark)


class TestArrow(EngineParity):
    """The Arrow engine against itself: what differs is the optimizer and the source."""

    @pytest.fixture
    def engine(self) -> Executor:
        return engine_named("arrow")


@pytest.mark.spark
class TestSpark(EngineParity):
    @pytest.fixture
    def engine(self, spark_engine: Executor) -> Executor:
        return spark_engine


class TestTiny(EngineParity):
    @pytest.fixture
    def engine(self) -> Executor:
        return TinyEngine()


def test_every_node_has_a_case() -> None:
    seen = set(SOURCES_WITH_TESTS_OF_THEIR_OWN)
    for case in (*cases.NODES.values(), *cases.WITHOUT_PEER.values()):
        seen.update(node.kind for node in topological(case(values(edge_table("one")))))
    missing = {kind for kind, cls in NODES.items() if cls.__module__.startswith("millpond.")} - seen
    assert not missing, f"add cases to millpond/testing/engine/cases.py for {sorted(missing)}"


def test_the_engines_declare_what_they_are_tested_with() -> None:
    from millpond.engine.spark import SparkEngine

    ours = {kind for kind, cls in NODES.items() if cls.__module__.startswith("millpond.")}
    everything = ours - {Stored.kind}
    assert SparkEngine().capabilities.nodes == everything, "see _NODES in engine/spark/engine.py"
    without = {
        node.kind
        for case in cases.WITHOUT_PEER.values()
        for node in topological(case(values(edge_table("one"))))
    } & {"Sql", "Window"}
    assert engine_named("arrow").capabilities.nodes == everything - without


def test_spark_compiles_what_it_declares() -> None:
    from millpond.engine.spark import compile as compiling
    from millpond.engine.spark import engine

    declared, compiled = set(engine._NODES), set(compiling._COMPILERS)
    assert declared == compiled, "_NODES of engine.py and _COMPILERS of compile.py differ"


def test_every_function_has_a_case() -> None:
    from millpond.plan.codec import expressions_of
    from millpond.plan.functions import FUNCTIONS

    seen: set[str] = set()
    for case in cases.CASES.values():
        for node in topological(case(values(edge_table("one")))):
            seen.update(expressions_of(node))
    assert not set(FUNCTIONS) - seen


@pytest.mark.parametrize("case", list(cases.CASES))
def test_every_case_survives_the_wire(case: str) -> None:
    parts.register()
    for edge in EDGES:
        plan = cases.CASES[case](values(edge_table(edge)))
        assert loads(dumps(plan)) == plan


@given(plans(max_nodes=6))
@settings(max_examples=settings.default.max_examples * 6)  # type: ignore[union-attr]
def test_random_plans_optimized_or_not(plan: Plan) -> None:
    arrow = engine_named("arrow")
    expected = outcome(plan, arrow)
    assert expected.error is None
    assert_same_outcome(outcome(optimize(plan), arrow), expected, about=str(plan))


@pytest.mark.spark
@given(plan=plans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_random_plans_on_both_engines(plan: Plan, spark_engine: Executor) -> None:
    expected = outcome(plan, engine_named("arrow"))
    assert_same_outcome(outcome(plan, spark_engine), expected, about=str(plan))
    better = optimize(plan)
    assert_same_outcome(outcome(better, spark_engine), expected, about=f"{plan}\n→\n{better}")
