"""What stands between plans and engines: stored paths resolved, unsupported plans refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.engine.tiny.engine import TinyEngine

from millpond.base.errors import PlanError, UnsupportedExpressionError, UnsupportedNodeError
from millpond.plan import types as t
from millpond.plan.executor import (
    Capabilities,
    Execution,
    Executor,
    Scope,
    check_supported,
    resolve_stored,
)
from millpond.plan.expr import col
from millpond.plan.make import stored, values
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from millpond.plan.node import Plan
    from millpond.plan.sources import Stored

SCHEMA = t.Struct.of(a=t.LONG)
DATA = values([{"a": 1}])


class Fake:
    """A scope in which paths are plans."""

    def __init__(self, **plans: Plan) -> None:
        self.plans = {f"/{name}": plan for name, plan in plans.items()}
        self.asked: list[str] = []

    def resolve(self, stored: Stored) -> Plan:
        self.asked.append(stored.path)
        return self.plans[stored.path]


A, B = stored("/a", SCHEMA), stored("/b", SCHEMA)


def test_stored_paths_are_exchanged() -> None:
    scope = Fake(a=DATA)
    plan = resolve_stored(A.filter(col("a") > 1).head(3), scope)
    assert plan == DATA.filter(col("a") > 1).head(3)
    assert isinstance(scope, Scope)


def test_a_plan_without_stored_paths_stays_as_it_is() -> None:
    plan = DATA.head(3)
    assert resolve_stored(plan, None) is plan


def test_a_path_that_leads_to_paths_is_followed_and_asked_once() -> None:
    scope = Fake(a=B.head(5).union(B), b=stored("/c", SCHEMA), c=DATA)
    plan = resolve_stored(A.union(B, A), scope)
    assert plan == (DATA.head(5).union(DATA)).union(DATA, DATA.head(5).union(DATA))
    assert sorted(scope.asked) == ["/a", "/b", "/c"]
    assert plan.children[0] is plan.children[2]
    assert len([n for n in topological(plan) if n.kind == "Values"]) == 1


def test_long_chains_of_paths_are_followed() -> None:
    scope = Fake(**{f"p{n}": stored(f"/p{n + 1}", SCHEMA).head(n) for n in range(3000)}, p3000=DATA)
    plan = resolve_stored(stored("/p0", SCHEMA), scope)
    assert len(topological(plan)) == 3001


def test_without_a_scope_the_path_is_named() -> None:
    with pytest.raises(PlanError, match="/a is a path of a pond, but no scope was given") as error:
        resolve_stored(A.head(3), None)
    assert "scope=" in str(error.value.hint)


def test_another_schema_is_refused() -> None:
    with pytest.raises(PlanError, match="/a has struct<b: string> in this scope, not struct<a: "):
        resolve_stored(A, Fake(a=values([], t.Struct.of(b=t.STRING))))


def test_a_path_that_is_defined_by_itself_is_refused() -> None:
    with pytest.raises(PlanError, match="defined by itself: /a -> /b -> /a"):
        resolve_stored(A, Fake(a=B.head(1), b=A.tail(1)))
    with pytest.raises(PlanError, match="defined by itself: /a -> /a"):
        resolve_stored(A.head(3), Fake(a=A))


class Narrow(TinyEngine):
    name = "narrow"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(frozenset({"Values", "Filter"}), frozenset({"gt"}))


def test_a_node_that_the_engine_does_not_run_is_named() -> None:
    engine = Narrow()
    check_supported(DATA.filter(col("a") > 1), engine)
    check_supported(A.filter(col("a") > 1), engine)
    with pytest.raises(UnsupportedNodeError, match="narrow engine does not run Head") as error:
        check_supported(DATA.head(3).filter(col("a") > 1), engine)
    assert (error.value.node, error.value.engine) == ("Head", "narrow")
    assert "engine='auto'" in str(error.value.hint)


def test_a_function_that_the_engine_does_not_know_is_named() -> None:
    with pytest.raises(UnsupportedExpressionError, match="does not evaluate add") as error:
        check_supported(DATA.filter(col("a") + 1 > 1), Narrow())
    assert error.value.function == "add"


def test_the_protocols_are_met() -> None:
    engine = TinyEngine()
    assert isinstance(engine, Executor)
    assert isinstance(engine.execute(DATA), Execution)
    assert not isinstance(object(), Executor)
