"""Types of one column in several places: what they are together, and what is refused."""

from __future__ import annotations

import pytest

from millpond.base.errors import SchemaError
from millpond.plan import types as t
from millpond.plan.make import stored
from millpond.plan.unite import union_by_name, united_schema

NUMBERS = [
    (t.LONG, t.DOUBLE, t.DOUBLE),
    (t.LONG, t.FLOAT, t.DOUBLE),
    (t.List(t.LONG), t.List(t.DOUBLE), t.List(t.DOUBLE)),
]
ALWAYS = [
    (t.INTEGER, t.LONG, t.LONG),
    (t.INTEGER, t.DOUBLE, t.DOUBLE),
    (t.DATE, t.TIMESTAMP_NTZ, t.TIMESTAMP_NTZ),
    (t.NULL, t.TIMESTAMP, t.TIMESTAMP),
]
NEVER = [
    (t.DATE, t.TIMESTAMP),
    (t.List(t.DATE), t.List(t.TIMESTAMP)),
    (t.TIMESTAMP_NTZ, t.TIMESTAMP),
    (t.LONG, t.STRING),
    (t.LONG, t.List(t.DOUBLE)),
    (t.Decimal(10, 2), t.DOUBLE),
]


def together(left: t.DataType, right: t.DataType, *, texts: bool) -> t.DataType:
    schemas = {"a": t.Struct.of(x=left), "b": t.Struct.of(x=right)}
    return united_schema(schemas, texts=texts).field("x").type


def test_what_is_the_same_stays_as_it_is() -> None:
    member = t.Field("x", t.LONG).with_metadata({"comment": "in metres"})
    same = t.Field("s", t.Struct((member,)))
    one, two = t.Struct((same,)), t.Struct((same, t.Field("y", t.LONG)))
    rows = union_by_name({"a": stored("/a", one), "b": stored("/b", two)})
    assert rows.schema.names == ("s", "y")
    assert rows.schema.field("s").type == same.type


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize(("left", "right", "both"), ALWAYS)
def test_wider_types(left: t.DataType, right: t.DataType, both: t.DataType, texts: bool) -> None:
    assert together(left, right, texts=texts) == together(right, left, texts=texts) == both


@pytest.mark.parametrize(("left", "right", "both"), NUMBERS)
def test_numbers_of_texts(left: t.DataType, right: t.DataType, both: t.DataType) -> None:
    assert together(left, right, texts=True) == together(right, left, texts=True) == both
    with pytest.raises(SchemaError):
        together(left, right, texts=False)


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize(("left", "right"), NEVER)
def test_types_apart_are_named(left: t.DataType, right: t.DataType, texts: bool) -> None:
    with pytest.raises(SchemaError) as caught:
        together(left, right, texts=texts)
    assert caught.value.message == f"column 'x' is {left} in a and {right} in b"
