"""Visitors carry everything, in plain data, once for each node, children first."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from tests.plan import samples
from tests.plan.strategies import SCHEMA, data_types, predicates, schemas
from tests.plan.visitor.rebuild import Expressions, Plans, Schemas

from millpond.base.errors import UnsupportedExpressionError, UnsupportedNodeError
from millpond.plan import types as t
from millpond.plan.bind import bind
from millpond.plan.bound import BoundExpr
from millpond.plan.expr import Expr, col
from millpond.plan.make import sql, values
from millpond.plan.node import NODES, Plan, Unary
from millpond.plan.sources import File, Scan
from millpond.plan.visitor import (
    ExpressionVisitor,
    PlanVisitor,
    SchemaVisitor,
    visit_expression,
    visit_plan,
    visit_schema,
    visit_type,
)
from millpond.plan.visitor.schema import PRIMITIVES
from millpond.plan.visitor.walk_expression import EXPRESSIONS, LITERALS
from millpond.plan.visitor.walk_plan import NODE_VISITS


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class TestCompleteness:
    def test_every_node_is_visited(self) -> None:
        for kind, cls in NODES.items():
            if not cls.__module__.startswith("millpond."):
                continue
            method = f"visit_{_snake(kind)}"
            assert hasattr(PlanVisitor, method), (
                f"the node {kind} can't cross to an engine: add PlanVisitor.{method} to "
                "plan/visitor/plan.py, next to a default that refuses"
            )
            assert cls in NODE_VISITS, (
                f"the node {kind} is not driven: add it to NODE_VISITS in plan/visitor/walk_plan.py"
            )

    def test_every_expression_is_visited(self) -> None:
        # By name, since a dataclass with slots leaves its first self among the subclasses.
        driven = {cls.__name__ for cls in EXPRESSIONS}
        for cls in BoundExpr.__subclasses__():
            if cls.__module__.startswith("millpond."):
                assert cls.__name__ in driven, (
                    f"{cls.__name__} is not driven: give ExpressionVisitor a method for it and add "
                    "it to EXPRESSIONS in plan/visitor/walk_expression.py"
                )

    def test_every_type_is_visited(self) -> None:
        for name in t.PRIMITIVE_NAMES:
            assert hasattr(SchemaVisitor, f"visit_{name}"), f"add SchemaVisitor.visit_{name}"
            assert name in PRIMITIVES, f"add {name} to PRIMITIVES in plan/visitor/schema.py"
            if name not in ("void", "variant"):
                assert name in LITERALS, f"add {name} to LITERALS in walk_expression.py"
                assert hasattr(ExpressionVisitor, f"visit_literal_{name}")
        for cls in (t.Decimal, t.Struct, t.List, t.Map):
            assert hasattr(SchemaVisitor, f"visit_{cls.__name__.lower()}")


class TestNothingIsLost:
    @pytest.mark.parametrize("kind", sorted(samples.NODES))
    def test_of_plans(self, kind: str) -> None:
        plan = samples.NODES[kind]
        if isinstance(plan, Scan):
            plan = replace(plan, stats=())
        visitor = Plans()
        (built,) = visitor.lists[visit_plan(plan, visitor)]
        assert built == plan
        assert visitor.visits[-1] == kind

    @pytest.mark.parametrize("kind", sorted(samples.EXPRESSIONS))
    def test_of_expressions(self, kind: str) -> None:
        visitor = Expressions()
        assert (
            visitor.one(visit_expression(samples.EXPRESSIONS[kind], visitor))
            == (samples.EXPRESSIONS[kind])
        )

    @pytest.mark.parametrize("literal", samples.LITERALS, ids=repr)
    def test_of_literals(self, literal: BoundExpr) -> None:
        visitor = Expressions()
        assert visitor.one(visit_expression(literal, visitor)) == literal

    @given(predicates())
    def test_of_random_expressions(self, expr: Expr) -> None:
        bound, visitor = bind(expr, SCHEMA), Expressions()
        assert visitor.one(visit_expression(bound, visitor)) == bound

    @given(schemas())
    def test_of_schemas(self, schema: t.Struct) -> None:
        visitor = Schemas()
        assert visitor.struct(visit_schema(schema, visitor)) == schema

    @given(data_types())
    def test_of_types(self, type_: t.DataType) -> None:
        visitor = Schemas()
        assert visitor.type(visit_type(type_, visitor)) == type_

    def test_of_variants(self) -> None:
        visitor = Schemas()
        assert visitor.type(visit_type(t.VARIANT, visitor)) == t.VARIANT

    def test_of_a_scan_without_constants(self) -> None:
        scan = Scan("parquet", (File("a"), File("b", 3, 4)), t.Struct.of(a=t.LONG))
        visitor = Plans()
        (built,) = visitor.lists[visit_plan(scan, visitor)]
        assert built == scan

    def test_of_a_query_without_inputs(self) -> None:
        plan = sql("SELECT 1 AS a", schema=t.Struct.of(a=t.LONG))
        visitor = Plans()
        (built,) = visitor.lists[visit_plan(plan, visitor)]
        assert built == plan


_OPAQUE = {"visit_values", "visit_filter_ordered", "visit_stateful_mapping"}


def _watched(visitor: Any, seen: list[tuple[str, tuple[Any, ...]]]) -> Any:
    """The visitor, whose calls are written down."""
    for name in dir(type(visitor)):
        if name.startswith(("visit_", "make_")):
            method = getattr(visitor, name)

            def call(*args: Any, _name: str = name, _method: Any = method) -> Any:
                seen.append((_name, args))
                return _method(*args)

            setattr(visitor, name, call)
    return visitor


def _record(plan: Plan) -> list[tuple[str, tuple[Any, ...]]]:
    seen: list[tuple[str, tuple[Any, ...]]] = []
    visitor = Plans()
    for part in (visitor, visitor.expressions, visitor.expressions.schemas):
        _watched(part, seen)
    visit_plan(plan, visitor)
    return seen


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str, bytes)


@pytest.mark.parametrize("kind", sorted(samples.NODES))
def test_calls_carry_plain_data(kind: str) -> None:
    for name, args in _record(samples.NODES[kind]):
        opaque = [arg for arg in args if not _is_plain(arg)]
        assert len(opaque) == (1 if name in _OPAQUE else 0), f"{name}{args}"


@pytest.mark.parametrize("literal", samples.LITERALS, ids=repr)
def test_literals_are_plain_data(literal: BoundExpr) -> None:
    seen: list[tuple[str, tuple[Any, ...]]] = []
    visit_expression(literal, _watched(Expressions(), seen))
    assert all(_is_plain(args) for _, args in seen)


def test_calls_come_in_the_order_that_is_written_down() -> None:
    plan = values(pa.table({"a": [1]})).filter(col("a") > 3).head(2)
    calls = [name for name, _ in _record(plan)]
    assert calls == [
        *("make_plan_list", "make_plan_list", "make_plan_list"),
        *("make_field_list", "visit_long", "visit_values"),
        *("make_expression_list", "make_expression_list"),
        *("make_field_list", "visit_long", "visit_path", "visit_literal_long"),
        *("make_field_list", "visit_boolean", "visit_call", "visit_filter", "visit_head"),
    ]


def test_a_schema_and_a_type_are_told_once() -> None:
    plan = samples.rows()
    for n in range(50):
        plan = plan.filter(col("a") > n)
    calls = [name for name, _ in _record(plan)]
    assert calls.count("visit_filter") == 50
    assert calls.count("visit_map") == 1
    assert calls.count("visit_boolean") == 2  # one of the schema, one of the predicates' type


def test_shared_nodes_are_visited_once() -> None:
    plan: Plan = samples.rows()
    for _ in range(100):
        plan = plan.union(plan)
    visitor = Plans()
    (built,) = visitor.lists[visit_plan(plan, visitor)]
    assert built == plan
    assert visitor.visits == ["Values", *["Union"] * 100]
    assert visitor.shared == 200
    assert built.children[0] is built.children[1]


def test_a_shared_source_is_shared() -> None:
    base = values([{"a": 1}])
    visitor = Plans()
    visit_plan(base.head(1).union(base.tail(1)), visitor)
    assert visitor.visits == ["Values", "Head", "Tail", "Union"]


def test_shared_expressions_are_visited_once_and_leaves_again() -> None:
    expr: Expr = col("a")
    for _ in range(60):
        expr = expr + expr
    bound, visitor = bind(expr, SCHEMA), Expressions()
    assert visitor.one(visit_expression(bound, visitor)) == bound
    assert visitor.shared == 2 * 59


def test_columns_share_what_they_have_in_common() -> None:
    twice = bind(col("a") + col("a"), SCHEMA)
    from millpond.plan.bound import BoundNamed
    from millpond.plan.rows import Project

    plan = Project(values([], SCHEMA), (BoundNamed("x", twice), BoundNamed("y", twice)))
    visitor = Plans()
    (built,) = visitor.lists[visit_plan(plan, visitor)]
    assert built == plan
    assert visitor.expressions.shared == 2


def test_long_chains_are_visited_without_recursion() -> None:
    plan: Plan = samples.rows()
    for n in range(10_000):
        plan = plan.head(n)
    visitor = Plans()
    (built,) = visitor.lists[visit_plan(plan, visitor)]
    assert built == plan
    expr: Expr = col("a")
    for _ in range(10_000):
        expr = -expr
    bound, reader = bind(expr, SCHEMA), Expressions()
    assert reader.one(visit_expression(bound, reader)) == bound
    type_: t.DataType = t.LONG
    for _ in range(100):
        type_ = t.List(type_)
    types = Schemas()
    assert str(types.type(visit_type(type_, types))) == str(type_)


class TestRefusals:
    @pytest.mark.parametrize("kind", sorted(samples.NODES))
    def test_a_node_that_is_not_implemented_is_named(self, kind: str) -> None:
        class Bare(PlanVisitor):
            engine = "bare"

            def __init__(self) -> None:
                self.expressions = Expressions()

            def make_plan_list(self, reserve: int) -> int:
                return 0

            def make_file_list(self, reserve: int) -> int:
                return 0

        class Leaves(Bare):
            def visit_values(self, *args: Any) -> None: ...

            def visit_file(self, *args: Any) -> None: ...

            def visit_shared(self, *args: Any) -> None: ...

        plan = samples.NODES[kind]
        visitor = Bare() if not plan.children or kind == "Union" else Leaves()
        wanted = "Values" if kind == "Union" else kind
        if kind == "Join":
            wanted = "Project"
        with pytest.raises(UnsupportedNodeError, match=f"the bare engine does not run {wanted}"):
            visit_plan(plan, visitor)

    @pytest.mark.parametrize("kind", sorted(samples.EXPRESSIONS))
    def test_an_expression_that_is_not_implemented_is_named(self, kind: str) -> None:
        class Bare(ExpressionVisitor):
            engine = "bare"

            def __init__(self) -> None:
                self.schemas = Schemas()

            def make_expression_list(self, reserve: int) -> int:
                return 0

        with pytest.raises(UnsupportedExpressionError, match="the bare engine does not evaluate"):
            visit_expression(samples.EXPRESSIONS[kind], Bare())

    def test_a_type_that_is_not_implemented_is_named(self) -> None:
        class Bare(SchemaVisitor):
            engine = "bare"

            def make_field_list(self, reserve: int) -> int:
                return 0

        types: list[t.DataType] = [
            *(t.Primitive(name) for name in t.PRIMITIVE_NAMES),
            t.Decimal(3, 1),
            t.Struct(),
        ]
        for type_ in types:
            kind = str(type_).partition("(")[0].partition("<")[0]
            with pytest.raises(UnsupportedNodeError, match=f"does not run the type {kind}"):
                visit_type(type_, Bare())

    def test_lists_have_to_be_made(self) -> None:
        with pytest.raises(NotImplementedError, match="makes no field lists"):
            visit_schema(SCHEMA, SchemaVisitor())
        with pytest.raises(NotImplementedError, match="makes no expression lists"):
            visit_expression(bind(col("a"), SCHEMA), ExpressionVisitor())


def test_a_plugins_node_is_passed_as_it_is_or_refused() -> None:
    @dataclass(frozen=True, slots=True, eq=False, repr=False)
    class Skip(Unary, Plan):
        input: Plan
        n: int

        def __post_init__(self) -> None:
            self._set_schema(self.input.schema)

    class Knowing(Plans):
        def visit_unknown(self, to: int, schema: int, kind: str, node: Any, below: int) -> None:
            assert kind == "Skip"
            self._put(to, schema, node.with_children(tuple(self.lists[below])))

    del NODES["Skip"]
    plan = Skip(samples.rows(), 3).head(2)
    visitor = Knowing()
    (built,) = visitor.lists[visit_plan(plan, visitor)]
    assert built == plan
    with pytest.raises(UnsupportedNodeError, match="does not run Skip"):
        visit_plan(plan, Plans())
