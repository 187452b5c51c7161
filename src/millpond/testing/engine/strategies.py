"""Hypothesis strategies: random tables, random expressions over them, random plans.

Expressions are drawn so that they can't raise: whether an error that nobody needs appears depends
on what an optimizer removes. Errors have cases of their own in `cases.py`.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from millpond.plan import aggregates as agg
from millpond.plan.expr import PathExpr, col, element, if_else, lit, path
from millpond.plan.make import values
from millpond.plan.paths import Name
from millpond.plan.rows import JOIN_KINDS
from millpond.plan.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
    List,
    Struct,
    is_numeric,
    is_orderable,
)

if TYPE_CHECKING:
    from millpond.plan.aggregates import Measure
    from millpond.plan.expr import Expr
    from millpond.plan.node import Plan

SCHEMA = Struct.of(
    k=LONG,
    n=INTEGER,
    r=DOUBLE,
    s=STRING,
    b=BOOLEAN,
    d=DATE,
    t=TIMESTAMP,
    p=Decimal(10, 2),
    o=Struct.of(x=LONG, y=STRING, z=List(LONG)),
    a=List(STRING),
    e=List(Struct.of(k=STRING, v=DOUBLE)),
)

_WHOLE = st.integers(-5, 5)
_REAL = st.sampled_from([0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), float("-inf"), 1e300])
_TEXT = st.sampled_from(["", "a", "b", "ab", "A", "é", "日本", "a%b", " x "])
_DAYS = st.dates(dt.date(1960, 1, 1), dt.date(2030, 1, 1))
_TIMES = st.datetimes(
    dt.datetime(1960, 1, 1),  # noqa: DTZ001
    dt.datetime(2030, 1, 1),  # noqa: DTZ001
    timezones=st.just(dt.UTC),
)


def value_of(type_: DataType) -> st.SearchStrategy[Any]:
    """Values of a type, few and repeating, so that keys meet; null among them."""
    if isinstance(type_, Struct):
        fields = {f.name: value_of(f.type) for f in type_}
        return st.none() | st.fixed_dictionaries(fields)
    if isinstance(type_, List):
        return st.none() | st.lists(value_of(type_.element), max_size=3)
    if isinstance(type_, Decimal):
        return st.none() | st.integers(-999, 999).map(lambda n: D(n) / 100)
    plain: dict[DataType, st.SearchStrategy[Any]] = {
        LONG: _WHOLE,
        INTEGER: _WHOLE,
        DOUBLE: _REAL,
        STRING: _TEXT,
        BOOLEAN: st.booleans(),
        DATE: _DAYS,
        TIMESTAMP: _TIMES,
    }
    return st.none() | plain[type_]


@st.composite
def tables(draw: st.DrawFn, *, max_rows: int = 12) -> Plan:
    """A table in memory with `SCHEMA`."""
    row = st.fixed_dictionaries({f.name: value_of(f.type) for f in SCHEMA})
    return values(draw(st.lists(row, max_size=max_rows)), SCHEMA)


def leaves(schema: Struct) -> list[tuple[PathExpr, DataType]]:
    """Every column and struct member of a schema, with its type."""
    found: list[tuple[PathExpr, DataType]] = []
    todo = [((Name(f.name),), f.type) for f in reversed(schema.fields)]
    while todo:
        steps, type_ = todo.pop()
        found.append((PathExpr(steps), type_))
        if isinstance(type_, Struct):
            todo.extend(((*steps, Name(f.name)), f.type) for f in type_)  # type: ignore[misc]
    return found


@st.composite
def scalars(draw: st.DrawFn, schema: Struct, type_: DataType, depth: int = 2) -> Expr:
    """An expression of a scalar type that can't raise."""
    paths = [expr for expr, found in leaves(schema) if found == type_]
    options = ["literal", *(["path"] * 4 if paths else [])]
    if depth:
        options += ["if", "coalesce"]
        options += ["arithmetic"] if type_ == DOUBLE else []
        options += ["text"] if type_ == STRING else []
    kind = draw(st.sampled_from(options))
    if kind == "path":
        return draw(st.sampled_from(paths))
    if kind == "literal":
        return lit(draw(value_of(type_)), type_)
    first = draw(scalars(schema, type_, depth - 1))
    second = draw(scalars(schema, type_, depth - 1))
    if kind == "if":
        return if_else(draw(predicates(schema, depth - 1)), first, second)
    if kind == "coalesce":
        return first.coalesce(second)
    if kind == "arithmetic":
        return draw(st.sampled_from([first + second, first - second, first * second, -first]))
    return draw(st.sampled_from([first.concat(second), first.lower(), first.substr(0, 1)]))


@st.composite
def predicates(draw: st.DrawFn, schema: Struct, depth: int = 2) -> Expr:
    """A condition over rows of a schema."""
    places = leaves(schema)
    lists = [(e, f.element) for e, f in places if isinstance(f, List)]
    kinds = ["compare"] * 4 + ["null"] + (["any", "all"] if lists else [])
    kinds += ["and", "or", "not"] if depth else []
    kind = draw(st.sampled_from(kinds))
    if kind in ("and", "or"):
        one, two = draw(predicates(schema, depth - 1)), draw(predicates(schema, depth - 1))
        return one & two if kind == "and" else one | two
    if kind == "not":
        return ~draw(predicates(schema, depth - 1))
    if kind == "null":
        return draw(st.sampled_from(places))[0].is_null()
    if kind in ("any", "all"):
        place, inner = draw(st.sampled_from(lists))
        condition = draw(_element_condition(inner))
        return place.any(condition) if kind == "any" else place.all(condition)
    types = [found for _, found in places if is_orderable(found)]
    type_ = draw(st.sampled_from(types or [LONG]))
    left, right = draw(scalars(schema, type_, depth)), draw(scalars(schema, type_, 0))
    return draw(_comparison(left, right))


def _comparison(left: Expr, right: Expr) -> st.SearchStrategy[Expr]:
    return st.sampled_from(
        [left == right, left != right, left < right, left >= right, left.same_as(right)]
    )


@st.composite
def _element_condition(draw: st.DrawFn, type_: DataType) -> Expr:
    if isinstance(type_, Struct):
        field = draw(st.sampled_from([f for f in type_.fields if is_orderable(f.type)]))
        return draw(_comparison(path(field.name), lit(draw(value_of(field.type)), field.type)))
    return draw(_comparison(element(), lit(draw(value_of(type_)), type_)))


@st.composite
def plans(draw: st.DrawFn, *, max_nodes: int = 4) -> Plan:
    """A plan of a few nodes over a random table."""
    plan = draw(tables())
    for _ in range(draw(st.integers(0, max_nodes))):
        plan = draw(_next_node(plan))
    return plan


@st.composite
def _next_node(draw: st.DrawFn, plan: Plan) -> Plan:
    schema = plan.schema
    keys = [expr for expr, type_ in leaves(schema) if is_orderable(type_)]
    kinds = ["filter", "filter", "head", "tail", "sample", "shuffle", "union", "select"]
    kinds += ["sort", "top_k", "aggregate", "join"] if keys else []
    kind = draw(st.sampled_from(kinds))
    if kind == "filter":
        return plan.filter(draw(predicates(schema)))
    if kind == "head":
        return plan.head(draw(st.integers(0, 8)))
    if kind == "tail":
        return plan.tail(draw(st.integers(0, 8)))
    if kind == "sample":
        return plan.sample(draw(st.integers(0, 8)), seed=draw(st.integers(-9, 9)))
    if kind == "shuffle":
        return plan.shuffle(seed=draw(st.integers(-9, 9)))
    if kind == "union":
        return plan.union(plan.filter(draw(predicates(schema))))
    if kind == "select":
        return draw(_selection(plan))
    chosen = draw(st.lists(st.sampled_from(keys), min_size=1, max_size=2))
    if kind == "aggregate":
        named = [expr.alias(f"key{i}") for i, expr in enumerate(chosen)]
        return plan.aggregate(named, **draw(_measures(schema)))
    if kind == "join":
        return draw(_join(plan, chosen[0]))
    ordered = [
        k.desc(nulls=draw(st.sampled_from(["first", "last"]))) if draw(st.booleans()) else k.asc()
        for k in chosen
    ]
    return plan.sort(*ordered) if kind == "sort" else plan.top_k(draw(st.integers(0, 8)), *ordered)


@st.composite
def _selection(draw: st.DrawFn, plan: Plan) -> Plan:
    names = draw(st.lists(st.sampled_from(plan.schema.names), unique=True, min_size=1))
    free = next(f"c{i}" for i in range(99) if f"c{i}" not in plan.schema)
    type_ = draw(st.sampled_from([LONG, DOUBLE, STRING, BOOLEAN]))
    return plan.select(*names, **{free: draw(scalars(plan.schema, type_))})


@st.composite
def _measures(draw: st.DrawFn, schema: Struct) -> dict[str, Measure]:
    found: dict[str, Measure] = {"rows": agg.count()}
    places = [(e, t) for e, t in leaves(schema) if is_orderable(t)]
    for number in range(draw(st.integers(0, 3))):
        place, type_ = draw(st.sampled_from(places))
        makers = [agg.count, agg.min, agg.max, agg.first, agg.last, agg.count_distinct]
        makers += [agg.sum, agg.mean] if is_numeric(type_) and type_ != DOUBLE else []
        found[f"m{number}"] = draw(st.sampled_from(makers))(place)
    return found


@st.composite
def _join(draw: st.DrawFn, plan: Plan, key: PathExpr) -> Plan:
    other = draw(tables(max_rows=6))
    wanted = next(t for e, t in leaves(plan.schema) if e.steps == key.steps)
    partner = next((e for e, t in leaves(SCHEMA) if t == wanted), None)
    if partner is None:
        return plan
    free = next(f"j{i}" for i in range(99) if f"j{i}0" not in plan.schema)
    right = other.select(**{f"{free}0": partner, f"{free}1": col("k"), f"{free}2": col("s")})
    how = draw(st.sampled_from(JOIN_KINDS))
    nulls_equal = draw(st.booleans())
    return plan.join(right, on=[(key, col(f"{free}0"))], how=how, nulls_equal=nulls_equal)
