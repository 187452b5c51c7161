"""Walks over plans and expressions: long chains, shared nodes, rewriting."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from millpond.plan import types as t
from millpond.plan.bind import bind
from millpond.plan.bound import BoundCall, BoundExpr, BoundLiteral
from millpond.plan.codec import dumps, loads
from millpond.plan.expr import Expr, col
from millpond.plan.make import values
from millpond.plan.order import Head
from millpond.plan.rows import Filter, Union
from millpond.plan.tree import find, replace, topological, transform

if TYPE_CHECKING:
    from millpond.plan.node import Plan

P = values([], t.Struct.of(a=t.LONG))
DEEP = 10_000


def _chain(length: int = DEEP) -> Plan:
    plan: Plan = P
    for n in range(length):
        plan = plan.head(n)
    return plan


def test_children_come_before_parents_and_every_node_once() -> None:
    base = P.head(9)
    plan = base.filter(col("a") > 1).union(base, base.tail(1))
    order = topological(plan)
    assert [node.kind for node in order] == ["Values", "Head", "Filter", "Tail", "Union"]
    places = {id(node): at for at, node in enumerate(order)}
    assert all(places[id(c)] < places[id(n)] for n in order for c in n.children)


def test_an_unchanged_tree_is_returned_as_it_is() -> None:
    plan = P.head(9).union(P.tail(1))
    assert transform(plan, lambda node: node) is plan


def test_a_rewrite_keeps_what_is_shared_shared() -> None:
    base = P.head(9)
    plan = base.union(base, base.tail(1))
    new = transform(plan, lambda node: Head(P, 7) if node is base else node)
    assert isinstance(new, Union)
    assert new.children[0] is new.children[1]
    assert new.children[2].children[0] is new.children[0]
    assert topological(new)[1] == Head(P, 7)
    calls: list[str] = []

    def note(node: Plan) -> Plan:
        calls.append(node.kind)
        return node

    transform(plan, note)
    assert calls == ["Values", "Head", "Tail", "Union"]


def test_replacing_is_by_content() -> None:
    plan = P.head(3).union(P.head(3), P.head(4))
    new = replace(plan, P.head(3), P.tail(1))
    assert [node.kind for node in new.children] == ["Tail", "Tail", "Head"]
    assert replace(plan, P.head(99), P) is plan


def test_finding() -> None:
    plan = P.head(3).filter(col("a") > 1).head(4)
    assert [str(node.label()) for node in find(plan, lambda n: isinstance(n, Head))] == ["3", "4"]


def test_equality_is_by_content_and_only_among_trees() -> None:
    assert P.head(3) == values([], t.Struct.of(a=t.LONG)).head(3)
    assert P.head(3) != P.head(4)
    assert P.head(3) != "P.head(3)"
    assert P.head(3).__eq__(3) is NotImplemented
    assert hash(P.head(3)) == hash(P.head(3))
    assert len({P.head(3), P.head(3)}) == 1
    assert P.head(3) != bind(col("a"), P.schema)
    assert P.head(3).fingerprint == P.head(3).digest.hex()
    assert len(P.head(3).digest) == 16


def test_copies_are_the_thing_itself() -> None:
    plan = P.head(3)
    assert copy.copy(plan) is plan
    assert copy.deepcopy({"p": plan})["p"] is plan


class TestLongChains:
    def test_of_plans(self) -> None:
        plan = _chain()
        assert len(topological(plan)) == DEEP + 1
        assert plan.schema == P.schema
        assert plan == _chain()
        assert hash(plan) == hash(_chain())
        assert pickle.loads(pickle.dumps(plan)) == plan
        assert loads(dumps(plan)) == plan
        assert copy.deepcopy(plan) is plan
        assert len(str(plan).splitlines()) == DEEP + 1
        assert len(repr(plan)) < 220
        assert len(list(find(plan, lambda node: isinstance(node, Head)))) == DEEP

    def test_of_plans_rewritten(self) -> None:
        new = transform(_chain(), lambda n: n if not isinstance(n, Head) else Head(n.input, 1))
        assert {n.label() for n in topological(new)[1:]} == {"1"}
        other = replace(_chain(), P, values([], t.Struct.of(b=t.LONG)))
        assert other.schema.names == ("b",)

    def test_of_expressions(self) -> None:
        expr: Expr = col("a")
        for _ in range(DEEP):
            expr = expr + 1
        bound = bind(expr, P.schema)
        assert pickle.loads(pickle.dumps(bound)) == bound
        assert len(str(bound)) > DEEP
        assert len(repr(bound)) == 200
        filtered = P.filter(expr > 0)
        assert loads(dumps(filtered)) == filtered

        def minus(node: BoundExpr) -> BoundExpr:
            same = isinstance(node, BoundCall)
            return BoundCall("subtract", node.args, node.type) if same else node  # type: ignore[attr-defined]

        assert "+" not in str(transform(bound, minus))

    def test_of_conjunctions(self) -> None:
        expr: Expr = col("a") > 0
        for n in range(DEEP):
            expr = expr & (col("a") != n)
        plan = P.filter(expr)
        assert isinstance(plan, Filter)
        assert len(plan.predicate.children) == DEEP + 1

    @pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
    def test_of_plans_let_go(self) -> None:
        class Probe(BoundLiteral):
            __slots__ = ("__weakref__",)

        probe = Probe(True, t.BOOLEAN)
        seen = weakref.ref(probe)
        plan: Plan = Filter(P, probe)
        for n in range(DEEP):
            plan = plan.head(n)
        del probe, plan
        gc.collect()
        assert seen() is None


def test_diamonds_are_walked_once() -> None:
    plan: Plan = P
    for _ in range(100):
        plan = plan.union(plan)
    assert len(topological(plan)) == 101
    assert len(dumps(plan)) < 20_000
    assert loads(dumps(plan)) == plan
    assert plan.digest
    assert len(str(plan).splitlines()) == 101


def test_a_leaf_has_no_children_to_replace() -> None:
    with pytest.raises(AssertionError, match="Values has no children"):
        P.with_children((P,))


def test_trees_hold_nothing_else() -> None:
    plan: Any = P.head(3)
    assert not hasattr(plan, "__dict__")
    with pytest.raises(AttributeError):
        plan.n = 4
