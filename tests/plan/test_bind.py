"""Binding: paths, literals that adapt, casts that appear, and errors in the user's own words."""

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import replace

import pytest
from hypothesis import given
from tests.plan.strategies import SCHEMA as RANDOM_SCHEMA
from tests.plan.strategies import numbers, predicates

from millpond.base.errors import PlanError, SchemaError, TypeMismatchError
from millpond.plan import types as t
from millpond.plan.bind import (
    as_bound,
    bind,
    bind_key,
    bind_named,
    bind_predicate,
    resolve_path,
    verify,
)
from millpond.plan.bound import (
    BoundCall,
    BoundCast,
    BoundExpr,
    BoundLiteral,
    BoundNamed,
    BoundParseJson,
    BoundPath,
    BoundQuantifier,
    conjoin,
    conjuncts,
    row_paths,
)
from millpond.plan.expr import Expr, col, element, if_else, lit, path
from millpond.plan.paths import Each, Name
from millpond.plan.tree import topological

SCHEMA = t.Struct.of(
    a=t.LONG,
    i=t.INTEGER,
    f=t.FLOAT,
    x=t.DOUBLE,
    p=t.Decimal(10, 2),
    s=t.STRING,
    o=t.BOOLEAN,
    d=t.DATE,
    at=t.TIMESTAMP,
    n=t.TIMESTAMP_NTZ,
    place=t.Struct.of(lat=t.DOUBLE, deep=t.Struct.of(z=t.STRING)),
    tags=t.List(t.STRING),
    items=t.List(t.Struct.of(k=t.STRING, v=t.LONG, sub=t.List(t.LONG))),
    attrs=t.Map(t.STRING, t.Struct.of(u=t.LONG)),
    codes=t.Map(t.LONG, t.STRING),
    maps=t.List(t.Map(t.STRING, t.LONG)),
)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("a", t.LONG),
        ("place.deep.z", t.STRING),
        ("tags[0]", t.STRING),
        ("tags[*]", t.List(t.STRING)),
        ("items[*].v", t.List(t.LONG)),
        ("items[-1].v", t.LONG),
        ("items[*].sub[*]", t.List(t.List(t.LONG))),
        ("items[*].sub[0]", t.List(t.LONG)),
        ("attrs.anything.u", t.LONG),
        ('attrs."any key"', t.Struct.of(u=t.LONG)),
        ("maps[*].k", t.List(t.LONG)),
    ],
)
def test_paths_have_types(text: str, type_: t.DataType) -> None:
    bound = bind(path(text), SCHEMA)
    assert isinstance(bound, BoundPath)
    assert bound.type == type_
    assert bound.scope == "row"


@pytest.mark.parametrize(
    ("text", "error", "message", "hint"),
    [
        ("b", SchemaError, "there is no column 'b'", "there are"),
        ("plase.lat", SchemaError, "there is no column 'plase'", "'place'"),
        ("place.lta", SchemaError, "place has no member 'lta'", "'lat'"),
        ("place.deep.q", SchemaError, "place.deep has no member 'q'", "z"),
        ("items.k", TypeMismatchError, "it has no member 'k'", "write [*]"),
        ("a.b", TypeMismatchError, "a is a long, it has no member 'b'", None),
        ("a[0]", TypeMismatchError, "a is a long, not a list", None),
        ("codes.x", TypeMismatchError, "is a map<long, string>, it has no member", None),
        ("items[*].zz", SchemaError, r"items[*] has no member 'zz'", "k"),
    ],
)
def test_wrong_paths_say_where(
    text: str, error: type[Exception], message: str, hint: str | None
) -> None:
    with pytest.raises(error) as raised:
        bind(path(text), SCHEMA)
    assert isinstance(raised.value, PlanError)
    assert message in raised.value.message
    assert raised.value.hint is None if hint is None else hint in str(raised.value.hint)


def test_a_name_with_dots_is_one_column() -> None:
    schema = t.Struct.of(**{"Site.Temp C": t.DOUBLE})
    assert str(bind(col("Site.Temp C") > 1, schema)) == '("Site.Temp C" > 1.0)'


def test_optional_paths_are_null_where_the_schema_lacks_them() -> None:
    missing = path("place.nope").or_null()
    assert bind(missing, SCHEMA) == BoundLiteral(None, t.NULL)
    assert bind(missing + 1, SCHEMA).type == t.LONG
    assert bind(missing.len(), SCHEMA).type == t.INTEGER
    assert bind(missing.any(path("x") > 1), SCHEMA) == BoundLiteral(None, t.BOOLEAN)
    assert bind(missing.contains(5), SCHEMA) == BoundLiteral(None, t.BOOLEAN)
    assert bind(path("place.lat").or_null(), SCHEMA).type == t.DOUBLE
    with pytest.raises(TypeMismatchError):
        bind(path("a.b").or_null(), SCHEMA)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (col("i") > 3, "(i > 3)"),
        (col("i") > 2**40, "(cast(i as long) > 1099511627776)"),
        (col("i") > 1.5, "(cast(i as double) > 1.5)"),
        (col("f") > 0.1, "(cast(f as double) > 0.1)"),
        (col("f") > 1, "(f > 1.0)"),
        (col("p") > 1, "(p > 1.00d)"),
        (col("p") > decimal.Decimal("1.5"), "(p > 1.50d)"),
        (col("p") > decimal.Decimal("1.555"), "(cast(p as decimal(11,3)) > 1.555d)"),
        (col("p") > 1.5, "(cast(p as double) > 1.5)"),
        (col("p") * decimal.Decimal("1.5"), "(p * 1.5d)"),
        (col("d") > "2024-01-31", "(d > date '2024-01-31')"),
        (
            col("d") < dt.datetime(2024, 1, 1, 5, tzinfo=dt.UTC),
            "(cast(d as timestamp) < timestamp '2024-01-01T05:00:00+00:00')",
        ),
        (
            col("d") < dt.datetime(2024, 1, 1, 5),  # noqa: DTZ001
            "(cast(d as timestamp_ntz) < timestamp '2024-01-01T05:00:00')",
        ),
        (col("at") >= dt.date(2024, 1, 1), "(at >= timestamp '2024-01-01T00:00:00+00:00')"),
        (col("at") >= "2024-01-01", "(at >= timestamp '2024-01-01T00:00:00+00:00')"),
        (
            col("at") == dt.datetime(2024, 1, 1),  # noqa: DTZ001
            "(at = timestamp '2024-01-01T00:00:00+00:00')",
        ),
        (col("i").between(1, 2**40), "((i >= 1) and (cast(i as long) <= 1099511627776))"),
        (col("d").between("2024-01-01", "2024-02-01").is_null(), None),
        (if_else(col("o"), col("d"), "2024-01-01"), "if_else(o, d, date '2024-01-01')"),
        (col("a").coalesce(None, 7), "coalesce(a, null, 7)"),
        (lit(None) == lit(None), "(null = null)"),
        (col("a") / 2, "(cast(a as double) / 2.0)"),
    ],
)
def test_literals_adapt_and_casts_stand_in_the_plan(expr: Expr, text: str | None) -> None:
    bound = bind(expr, SCHEMA)
    assert text is None or str(bound) == text
    verify(bound, SCHEMA)


def test_values_of_isin_are_literals_of_one_type() -> None:
    half = decimal.Decimal("0.5")
    for expr, type_ in (
        (col("p").isin([1, half, None]), t.Decimal(10, 2)),
        (col("p").isin([decimal.Decimal("0.125"), 3]), t.Decimal(11, 3)),
        (col("x").isin([1, half, 2**60]), t.DOUBLE),
        (col("i").isin([1, 2**40]), t.LONG),
        (col("at").isin([dt.date(2024, 1, 1), "2024-01-02"]), t.TIMESTAMP),
        (col("f").isin([1, 2]), t.FLOAT),
    ):
        bound = bind(expr, SCHEMA)
        assert isinstance(bound, BoundCall)
        assert all(isinstance(arg, BoundLiteral) for arg in bound.args[1:])
        assert {arg.type for arg in bound.args} == {type_}


def test_nothing_is_among_no_values() -> None:
    assert bind(col("a").isin([]), SCHEMA) == BoundLiteral(False, t.BOOLEAN)
    with pytest.raises(SchemaError):
        bind(col("nope").isin([]), SCHEMA)


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (col("s") == 1, "eq takes arguments of one type, not (string, long)"),
        (col("a") == "1", "eq takes arguments of one type, not (long, string)"),
        (col("d") == "yesterday", "'yesterday' is not a date"),
        (col("n") == dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "takes arguments of one type"),
        (col("a").any(), "any and all look into lists; a is a long"),
        (col("tags").any(element() + 1 > 2), "add takes numbers, not (string, long)"),
        (col("tags").any(element()), "any takes a boolean predicate, not string"),
        (col("a").parse_json(t.List(t.LONG)), "parse_json reads strings, not long"),
        (col("s").parse_json(t.LONG), "parse_json gives structs, lists and maps, not long"),
        (col("a").cast(t.DATE), "long can't be cast to date"),
        (element() == 1, "element() stands outside any() and all()"),
        (col("tags").contains(col("s")), "contains over a list takes one literal"),
    ],
)
def test_errors_say_what_is_wrong(expr: Expr, message: str) -> None:
    with pytest.raises(PlanError) as error:
        bind(expr, SCHEMA)
    assert message in error.value.message


def test_quantifiers_see_the_element_alone() -> None:
    bound = bind(col("items").any((path("v") > 1) & path("sub").all(element() == 2)), SCHEMA)
    assert isinstance(bound, BoundQuantifier)
    nodes: list[BoundExpr] = topological(bound)
    scopes = {str(node): node.scope for node in nodes if isinstance(node, BoundPath)}
    assert scopes == {"items": "row", "v": "element", "sub": "element", "element": "element"}
    assert [str(p) for p in row_paths(bound)] == ["items"]
    with pytest.raises(SchemaError, match="the element has no member 'a'"):
        bind(col("items").any(col("a") > 1), SCHEMA)


def test_a_list_contains_a_literal_by_equality() -> None:
    assert str(bind(col("tags").contains("x"), SCHEMA)) == "any(tags, (element = 'x'))"
    assert str(bind(col("s").contains("x"), SCHEMA)) == "contains(s, 'x')"


def test_casts_of_texts_are_left_to_the_engine() -> None:
    assert isinstance(bind(lit("abc").cast(t.DATE, on_error="null"), SCHEMA), BoundCast)
    assert isinstance(bind(lit("2024-01-01").cast(t.DATE), SCHEMA), BoundCast)
    assert bind(lit(3).cast(t.BYTE), SCHEMA) == BoundLiteral(3, t.BYTE)
    assert isinstance(bind(lit(300).cast(t.BYTE), SCHEMA), BoundCast)
    assert bind(col("a").cast(t.LONG), SCHEMA) == bind(col("a"), SCHEMA)


def test_a_null_predicate_is_a_predicate() -> None:
    assert bind_predicate(lit(None), SCHEMA) == BoundLiteral(None, t.BOOLEAN)
    with pytest.raises(TypeMismatchError, match="a predicate is boolean; a is a long"):
        bind_predicate(col("a"), SCHEMA)


def test_columns_are_named_after_the_end_of_their_path() -> None:
    assert bind_named("a", SCHEMA).name == "a"
    assert bind_named(path("place.deep.z"), SCHEMA).name == "z"
    assert bind_named(path("items[*].v"), SCHEMA).name == "v"
    assert bind_named((col("a") + 1).alias("next"), SCHEMA).name == "next"
    done = bind_named("a", SCHEMA)
    assert bind_named(done, SCHEMA) is done
    with pytest.raises(PlanError, match="needs a name") as error:
        bind_named(col("a") + 1, SCHEMA)
    assert error.value.hint == 'add .alias("name")'
    assert isinstance(done, BoundNamed)


def test_sort_keys_are_bound_with_their_direction() -> None:
    key = bind_key(col("x").desc(nulls="first"), SCHEMA)
    assert (key.descending, key.nulls_first, str(key)) == (True, True, "x desc nulls first")
    assert bind_key(key, SCHEMA) is key
    assert bind_key("a", SCHEMA) == bind_key(col("a").asc(), SCHEMA)


def test_bound_expressions_pass_through() -> None:
    bound = bind(col("a"), SCHEMA)
    assert as_bound(bound, SCHEMA) is bound
    assert as_bound("a", SCHEMA) == bound


def test_what_is_shared_stays_shared() -> None:
    expr: Expr = col("a")
    for _ in range(60):
        expr = expr + expr
    bound = bind(expr, SCHEMA)
    assert len(topological(bound)) == 60 + 2  # the column is bound once for each occurrence
    verify(bound, SCHEMA)


def test_deep_expressions_are_bound_without_recursion() -> None:
    expr: Expr = col("x")
    for _ in range(10_000):
        expr = -expr
    bound = bind(expr, SCHEMA)
    verify(bound, SCHEMA)
    assert len(topological(bound)) == 10_001


def test_conjuncts_come_apart_and_together() -> None:
    bound = bind((col("a") > 1) & (col("o") & (col("x") < 2)), SCHEMA)
    parts = conjuncts(bound)
    assert [str(part) for part in parts] == ["(a > 1)", "o", "(x < 2.0)"]
    assert conjuncts(conjoin(parts)) == parts
    assert conjoin(()) == BoundLiteral(True, t.BOOLEAN)
    assert conjoin(parts[:1]) is parts[0]


@given(predicates())
def test_what_bind_made_is_accepted(expr: Expr) -> None:
    bound = bind(expr, RANDOM_SCHEMA)
    assert bound.type == t.BOOLEAN
    verify(bound, RANDOM_SCHEMA)


@given(numbers())
def test_numbers_are_typed(expr: Expr) -> None:
    bound = bind(expr, RANDOM_SCHEMA)
    assert t.is_numeric(bound.type) or bound.type == t.NULL
    verify(bound, RANDOM_SCHEMA)


def test_verify_finds_what_does_not_fit_a_schema() -> None:
    bound = bind(col("items").any(path("v") > 1) & (col("a") > 1), SCHEMA)
    verify(bound, SCHEMA)
    with pytest.raises(SchemaError, match=r"no column 'a' \(in "):
        verify(bound, t.Struct(tuple(f for f in SCHEMA if f.name != "a")))
    changed = t.Struct(tuple(replace(f, type=t.INTEGER) if f.name == "a" else f for f in SCHEMA))
    with pytest.raises(TypeMismatchError, match="a was bound as long but is a integer"):
        verify(bound, changed)
    items = t.List(t.Struct.of(v=t.INTEGER))
    inner = t.Struct(tuple(replace(f, type=items) if f.name == "items" else f for f in SCHEMA))
    with pytest.raises(TypeMismatchError, match="items was bound as"):
        verify(bound, inner)


def test_verify_checks_paths_inside_of_quantifiers() -> None:
    items = bind(col("items"), SCHEMA)
    wrong = BoundPath((Name("v"),), t.STRING, "element")
    predicate = BoundCall("is_null", (wrong,), t.BOOLEAN)
    with pytest.raises(TypeMismatchError, match="v was bound as string but is a long"):
        verify(BoundQuantifier("any", items, predicate), SCHEMA)
    row = BoundCall("is_null", (bind(col("a"), SCHEMA),), t.BOOLEAN)
    with pytest.raises(PlanError, match="paths start at the element"):
        verify(BoundQuantifier("any", items, row), SCHEMA)
    with pytest.raises(PlanError, match="paths start at the element"):
        verify(predicate, SCHEMA)


def test_impossible_bound_expressions_can_not_be_built() -> None:
    a, s = bind(col("a"), SCHEMA), bind(col("s"), SCHEMA)
    with pytest.raises(PlanError, match="can't begin like this"):
        BoundPath((), t.LONG)
    with pytest.raises(PlanError, match="can't begin like this"):
        BoundPath((Name("a"),), t.LONG, "table")  # type: ignore[arg-type]
    with pytest.raises(TypeMismatchError, match="look into lists"):
        BoundQuantifier("any", a, bind(col("o"), SCHEMA))
    with pytest.raises(PlanError, match="unknown quantifier 'none'"):
        BoundQuantifier("none", bind(col("tags"), SCHEMA), bind(col("o"), SCHEMA))  # type: ignore[arg-type]
    with pytest.raises(TypeMismatchError, match="reads strings"):
        BoundParseJson(a, t.List(t.LONG))
    with pytest.raises(TypeMismatchError, match="gives structs"):
        BoundParseJson(s, t.STRING)


def test_resolving_an_element_path() -> None:
    assert resolve_path((), t.LONG, scope="element") == t.LONG
    assert resolve_path((Each(),), t.List(t.LONG), scope="element") == t.List(t.LONG)
