"""Hypothesis strategies for types, values and expressions of the plan layer."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

from hypothesis import strategies as st

from millpond.plan import types as t
from millpond.plan.expr import Expr, col, element, if_else, lit, path

PRIMITIVES = [t.Primitive(name) for name in sorted(t.PRIMITIVE_NAMES - {"variant"})]
NAMES = st.text(st.characters(codec="utf-8"), max_size=8)


@st.composite
def decimals(draw: st.DrawFn) -> t.Decimal:
    precision = draw(st.integers(1, 38))
    return t.Decimal(precision, draw(st.integers(0, precision)))


def _below(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.builds(_field, NAMES, inner, st.booleans())
    structs = st.lists(fields, max_size=4, unique_by=lambda f: f.name)
    keys = inner.filter(lambda type_: type_ != t.NULL)
    return (
        st.builds(lambda e, n: t.List(e, n or e == t.NULL), inner, st.booleans())
        | st.builds(lambda k, v, n: t.Map(k, v, n or v == t.NULL), keys, inner, st.booleans())
        | structs.map(lambda found: t.Struct(tuple(found)))
    )


def _field(name: str, type_: t.DataType, nullable: bool) -> t.Field:
    return t.Field(name, type_, nullable or type_ == t.NULL)


def data_types() -> st.SearchStrategy[t.DataType]:
    """Any type; variants are left out, since they have no Arrow form of their own."""
    return st.recursive(st.sampled_from(PRIMITIVES) | decimals(), _below, max_leaves=6)


def schemas() -> st.SearchStrategy[t.Struct]:
    metadata = st.dictionaries(NAMES, st.integers() | NAMES | st.booleans(), max_size=2)
    fields = st.builds(
        lambda name, type_, nullable, given: _field(name, type_, nullable).with_metadata(given),
        *(NAMES, data_types(), st.booleans(), metadata),
    )
    found = st.lists(fields, max_size=5, unique_by=lambda f: f.name)
    return found.map(lambda fields: t.Struct(tuple(fields)))


SCHEMA = t.Struct.of(
    a=t.LONG,
    i=t.INTEGER,
    f=t.FLOAT,
    x=t.DOUBLE,
    s=t.STRING,
    b=t.BOOLEAN,
    p=t.Decimal(10, 2),
    d=t.DATE,
    at=t.TIMESTAMP,
    tags=t.List(t.STRING),
    items=t.List(t.Struct.of(k=t.STRING, v=t.LONG)),
)

_NUMBERS = ("a", "i", "f", "x", "p")
_LITERALS: dict[str, st.SearchStrategy[Any]] = {
    "number": st.integers(-(2**31), 2**31) | st.floats(width=64) | st.just(decimal.Decimal("1.5")),
    "text": st.text(st.characters(codec="utf-8"), max_size=5),
    "day": st.dates(),
    "moment": st.datetimes(
        dt.datetime(2, 1, 1),  # noqa: DTZ001
        dt.datetime(9998, 1, 1),  # noqa: DTZ001
        timezones=st.just(dt.UTC),
    ),
}


@st.composite
def numbers(draw: st.DrawFn, depth: int = 2) -> Expr:
    kind = draw(st.sampled_from(["column", "literal", *(["sum", "cast", "if"] if depth else [])]))
    if kind == "column":
        return col(draw(st.sampled_from(_NUMBERS)))
    if kind == "literal":
        return lit(draw(_LITERALS["number"] | st.none()))
    first, second = draw(numbers(depth - 1)), draw(numbers(depth - 1))
    if kind == "cast":
        return first.cast(t.DOUBLE) + second.cast(t.DOUBLE)
    if kind == "if":
        return if_else(draw(predicates(depth - 1)), first.cast(t.DOUBLE), second.cast(t.DOUBLE))
    return -(first.cast(t.DOUBLE)) * second.cast(t.DOUBLE)


@st.composite
def predicates(draw: st.DrawFn, depth: int = 2) -> Expr:
    """A condition over `SCHEMA` that can be bound."""
    kinds = ["number", "text", "day", "moment", "null", "list", "among"]
    kind = draw(st.sampled_from([*kinds, *(["and", "or", "not"] if depth else [])]))
    if kind in ("and", "or"):
        one, two = draw(predicates(depth - 1)), draw(predicates(depth - 1))
        return one & two if kind == "and" else one | two
    if kind == "not":
        return ~draw(predicates(depth - 1))
    if kind == "number":
        return draw(numbers(depth)).cast(t.DOUBLE) >= draw(numbers(0)).cast(t.DOUBLE)
    if kind == "text":
        text: str = draw(_LITERALS["text"])
        return col("s").lower().concat("!") != text
    if kind == "day":
        return col("d").same_as(draw(_LITERALS["day"] | _LITERALS["moment"]))
    if kind == "moment":
        moment: dt.date = draw(_LITERALS["day"] | _LITERALS["moment"])
        return col("at") <= moment
    if kind == "among":
        return col("a").isin(draw(st.lists(st.integers(-5, 5) | st.none(), max_size=4)))
    if kind == "list":
        inside = path("v").is_null() | (path("k") == draw(_LITERALS["text"]))
        return draw(st.sampled_from([col("items").all(inside), col("tags").any(element() > "a")]))
    return draw(st.sampled_from([col("x").is_nan(), col("items").is_not_null()]))
