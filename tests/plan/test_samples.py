"""The samples hold every kind that there is, so that the tests that go over them are complete."""

from __future__ import annotations

from tests.plan import samples

from millpond.plan.bound import BoundExpr
from millpond.plan.node import NODES
from millpond.plan.types import PRIMITIVE_NAMES


def test_every_node_has_a_sample() -> None:
    kinds = {kind for kind, cls in NODES.items() if cls.__module__.startswith("millpond.")}
    assert kinds == set(samples.NODES), "add the new node to tests/plan/samples.py"
    assert all(plan.kind == kind for kind, plan in samples.NODES.items())


def test_every_expression_has_a_sample() -> None:
    classes = {cls.__name__ for cls in BoundExpr.__subclasses__()}
    assert classes == set(samples.EXPRESSIONS), "add the new class to tests/plan/samples.py"


def test_every_scalar_type_has_a_literal() -> None:
    found = {str(literal.type) for literal in samples.LITERALS}
    assert PRIMITIVE_NAMES - {"variant"} <= found
