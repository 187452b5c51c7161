"""Nodes over rows: the schemas they compute, and everything they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import PlanError, SchemaError, TypeMismatchError
from millpond.plan import aggregates as agg
from millpond.plan import types as t
from millpond.plan.aggregates import BoundMeasure, Measure, bind_measure
from millpond.plan.bind import bind
from millpond.plan.bound import BoundNamed
from millpond.plan.expr import col, lit, path
from millpond.plan.make import values
from millpond.plan.rows import Aggregate, Filter, Join, ParseJson, Project, Union
from millpond.testing.engine.parts import FirstOfKey

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = t.Struct(
    (
        t.Field("a", t.LONG, nullable=False),
        t.Field("s", t.STRING),
        t.Field("x", t.DOUBLE),
        t.Field("p", t.Decimal(36, 2)),
        t.Field("o", t.BOOLEAN),
        t.Field("li", t.List(t.LONG)),
        t.Field("st", t.Struct.of(k=t.LONG)),
    )
)
P = values([], SCHEMA)
OTHER = values([], t.Struct.of(k=t.LONG, z=t.STRING))
A, S, FLAG, LI = (bind(col(name), SCHEMA) for name in ("a", "s", "o", "li"))


def test_a_filter_keeps_the_schema() -> None:
    plan = P.filter(col("a") > 1)
    assert plan.schema is P.schema
    assert plan.label() == "(a > 1)"
    assert plan.children == (P,)
    assert plan.inputs == (P,)


def test_a_row_filter_keeps_the_schema() -> None:
    plan = P.filter_ordered(FirstOfKey("s"))
    assert plan.schema is P.schema
    assert plan.label() == "testing.first_of_key(s)"


def test_a_projection_names_and_types_its_columns() -> None:
    plan = P.select("s", path("st.k"), y=col("x") * 2)
    assert plan.schema == t.Struct.of(s=t.STRING, k=t.LONG, y=t.DOUBLE)
    assert plan.label() == "s, k := st.k, y := (x * 2.0)"
    assert P.select().schema == t.Struct()


def test_parsed_json_is_one_more_column() -> None:
    plan = P.parse_json("s", t.Struct.of(k=t.LONG), output="parsed")
    assert plan.schema.names == (*SCHEMA.names, "parsed")
    assert plan.schema.field("parsed") == t.Field("parsed", t.Struct.of(k=t.LONG))
    assert plan.label() == "parsed := parse_json(s as struct<k: long>)"


def test_a_union_is_nullable_where_a_member_is() -> None:
    strict = values([], t.Struct((t.Field("a", t.LONG, nullable=False),)))
    loose = values([], t.Struct.of(a=t.LONG))
    assert strict.union(strict).schema.field("a").nullable is False
    assert strict.union(loose).schema.field("a").nullable is True
    assert strict.union(loose, strict).children == (strict, loose, strict)
    assert Union((loose,)).schema == loose.schema


def test_joins_have_the_columns_of_both_sides() -> None:
    keys = ((A, bind(col("k"), OTHER.schema)),)
    for how in ("inner", "left", "full"):
        join = Join(P, OTHER, how, keys)
        assert join.schema.names == (*SCHEMA.names, "k", "z")
        assert join.schema.field("a").nullable is (how == "full")
    for how in ("semi", "anti"):
        assert Join(P, OTHER, how, keys).schema is P.schema  # type: ignore[arg-type]
    assert Join(P, OTHER, "inner", keys).label() == "inner on a = k"
    assert Join(P, OTHER, "left", keys, nulls_equal=True).label() == "left on a <=> k"


def test_an_inner_join_keeps_what_is_never_null() -> None:
    strict = values([], t.Struct((t.Field("k", t.LONG, nullable=False),)))
    keys = ((A, bind(col("k"), strict.schema)),)
    assert Join(P, strict, "inner", keys).schema.field("k").nullable is False
    assert Join(P, strict, "left", keys).schema.field("k").nullable is True


def test_an_aggregation_has_keys_and_measures() -> None:
    plan = P.aggregate(
        ["s", path("st.k")],
        n=agg.count(),
        nx=agg.count("x"),
        kinds=agg.count_distinct("a"),
        total=agg.sum("a"),
        exact=agg.sum("p"),
        real=agg.sum("x"),
        mean=agg.mean("a"),
        lo=agg.min("s"),
        hi=agg.max("o"),
        first=agg.first("li"),
        last=agg.last("st", where=col("o")),
    )
    assert plan.schema == t.Struct.of(
        s=t.STRING,
        k=t.LONG,
        n=t.LONG,
        nx=t.LONG,
        kinds=t.LONG,
        total=t.LONG,
        exact=t.Decimal(38, 2),
        real=t.DOUBLE,
        mean=t.DOUBLE,
        lo=t.STRING,
        hi=t.BOOLEAN,
        first=t.List(t.LONG),
        last=t.Struct.of(k=t.LONG),
    )
    assert "last := last(st where o)" in plan.label()
    assert P.aggregate(n=agg.count()).label() == "n := count()"
    assert P.aggregate("s").schema == t.Struct.of(s=t.STRING)


def test_means_are_of_doubles() -> None:
    assert str(bind_measure("m", agg.mean("a"), SCHEMA)) == "m := mean(cast(a as double))"


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: Filter(P, A), TypeMismatchError, "a predicate is boolean, not long"),
        (lambda: P.filter(col("a")), TypeMismatchError, "a predicate is boolean; a is a long"),
        (lambda: Filter(OTHER, FLAG), SchemaError, "there is no column 'o' (in o)"),
        (lambda: P.filter_ordered(FirstOfKey("zz")), SchemaError, "no column 'zz'"),
        (lambda: Project(OTHER, (BoundNamed("y", A),)), SchemaError, "no column 'a'"),
        (lambda: P.select("a", s=col("a"), a=col("s")), SchemaError, "'a' stands twice"),
        (lambda: P.select(col("a") + 1), PlanError, "needs a name"),
        (
            lambda: P.parse_json("a", t.Struct(), output="q"),
            TypeMismatchError,
            "'a' is not text but long",
        ),
        (lambda: P.parse_json("s", t.Struct(), output="a"), SchemaError, "'a' stands twice"),
        (lambda: P.parse_json("q", t.Struct(), output="r"), SchemaError, "no column 'q'"),
        (lambda: ParseJson(OTHER, "k", t.Struct(), "r"), TypeMismatchError, "is not text"),
        (lambda: Union(()), PlanError, "at least one input"),
        (
            lambda: OTHER.union(OTHER.select("z", "k")),
            SchemaError,
            "column 1 of a union is 'k': long in the first input, 'z': string in input 2",
        ),
        (
            lambda: OTHER.union(OTHER, OTHER.select("k", z=col("k"))),
            SchemaError,
            "column 2 of a union is 'z': string in the first input, 'z': long in input 3",
        ),
        (
            lambda: OTHER.union(OTHER.select("k")),
            SchemaError,
            "input 2 of a union has 1 columns, the first has 2",
        ),
        (
            lambda: Join(P, OTHER, "outer", ((A, A),)),  # type: ignore[arg-type]
            PlanError,
            "unknown join 'outer'",
        ),
        (lambda: Join(P, OTHER, "inner", ()), PlanError, "at least one key"),
        (
            lambda: Join(P, OTHER, "inner", ((A, bind(col("z"), OTHER.schema)),)),
            TypeMismatchError,
            "of one scalar type; a is a long, z is a string",
        ),
        (lambda: Join(P, P, "semi", ((LI, LI),)), TypeMismatchError, "of one scalar type"),
        (lambda: Join(P, OTHER, "inner", ((A, A),)), SchemaError, "no column 'a'"),
        (
            lambda: Join(P, P, "inner", ((A, A),)),
            SchemaError,
            "both sides of the join have a column 'a'",
        ),
        (lambda: P.aggregate(), PlanError, "needs a key or a measure"),
        (lambda: P.aggregate("li"), TypeMismatchError, "can't be grouped by li, a list<long>"),
        (lambda: P.aggregate("a", a=agg.count()), SchemaError, "'a' stands twice"),
        (lambda: P.aggregate(n=agg.sum("s")), TypeMismatchError, "sum takes numbers, not string"),
        (lambda: P.aggregate(n=agg.mean("o")), TypeMismatchError, "mean takes numbers"),
        (lambda: P.aggregate(n=agg.min("li")), TypeMismatchError, "min takes values that have"),
        (
            lambda: P.aggregate(n=agg.count_distinct("st")),
            TypeMismatchError,
            "count_distinct takes scalar values",
        ),
        (lambda: P.aggregate(n=Measure("sum")), PlanError, "sum needs an argument"),
        (lambda: P.aggregate(n=Measure("mode", col("s"))), PlanError, "unknown measure 'mode'"),
        (lambda: P.aggregate(n=Measure("mode")), PlanError, "unknown measure 'mode'"),
        (
            lambda: P.aggregate(n=agg.count(where=col("a"))),
            TypeMismatchError,
            "a predicate is boolean",
        ),
        (lambda: BoundMeasure("n", "sum", S, t.STRING), TypeMismatchError, "sum takes numbers"),
        (
            lambda: BoundMeasure("n", "sum", A, t.DOUBLE),
            TypeMismatchError,
            "sum gives long, not double",
        ),
        (
            lambda: BoundMeasure("n", "count", None, t.LONG, A),
            TypeMismatchError,
            "filter is boolean, not long",
        ),
        (
            lambda: Aggregate(OTHER, (), (BoundMeasure("n", "sum", A, t.LONG),)),
            SchemaError,
            "no column 'a'",
        ),
        (lambda: P.join(OTHER, on="k"), SchemaError, "left side of the join has no column 'k'"),
    ],
)
def test_nodes_that_can_not_be(
    build: Callable[[], object], error: type[PlanError], message: str
) -> None:
    with pytest.raises(error) as raised:
        build()
    assert message in raised.value.message


def test_errors_tell_what_to_do() -> None:
    with pytest.raises(PlanError) as union:
        Union(())
    assert "values" in str(union.value.hint)
    with pytest.raises(PlanError) as mismatch:
        OTHER.union(OTHER.select("k"))
    assert "casts where types differ" in str(mismatch.value.hint)
    with pytest.raises(PlanError) as both:
        Join(P, P, "inner", ((A, A),))
    assert "rename or drop" in str(both.value.hint)


def test_a_predicate_that_is_always_null_is_allowed() -> None:
    assert P.filter(lit(None)).label() == "null"
