"""Types: values that can't be wrong, fields found by name at any width, types that meet."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from millpond.base.errors import PlanError, SchemaError, TypeMismatchError
from millpond.plan import types as t

WIDE = t.Struct(tuple(t.Field(f"c{n}", t.LONG) for n in range(10_000)))


@pytest.mark.parametrize(
    ("precision", "scale"), [(0, 0), (39, 0), (5, 6), (5, -1), (-1, 0)], ids=str
)
def test_impossible_decimals_are_refused(precision: int, scale: int) -> None:
    with pytest.raises(TypeMismatchError, match="can't exist") as error:
        t.Decimal(precision, scale)
    assert "1 to 38" in str(error.value)


def test_an_unknown_primitive_is_refused() -> None:
    with pytest.raises(TypeMismatchError, match="unknown type 'int'") as error:
        t.Primitive("int")
    assert "integer" in str(error.value.hint)


@pytest.mark.parametrize(
    "build",
    [
        lambda: t.Field("a", "long"),  # type: ignore[arg-type]
        lambda: t.List(int),  # type: ignore[arg-type]
        lambda: t.Map(t.STRING, None),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_type_is_refused(build: object) -> None:
    with pytest.raises(TypeMismatchError, match="is not a type"):
        build()  # type: ignore[operator]


def test_names_are_text_that_can_be_written() -> None:
    with pytest.raises(SchemaError, match="not 5"):
        t.Field(5, t.LONG)  # type: ignore[arg-type]
    with pytest.raises(TypeMismatchError, match="not valid Unicode"):
        t.Field("a\ud800", t.LONG)
    assert t.Field("", t.LONG).name == ""
    assert t.Field("Site.Temp °C", t.LONG).name == "Site.Temp °C"


def test_a_name_stands_once_and_case_matters() -> None:
    with pytest.raises(SchemaError, match="'a' stands twice"):
        t.Struct((t.Field("a", t.LONG), t.Field("b", t.LONG), t.Field("a", t.STRING)))
    assert t.Struct.of(a=t.LONG, A=t.LONG).names == ("a", "A")


def test_fields_are_found_by_name() -> None:
    schema = t.Struct.of(a=t.LONG, b=t.STRING)
    assert schema.field("b") == t.Field("b", t.STRING)
    assert schema.get("c") is None
    assert schema.position("b") == 1
    assert "a" in schema
    assert "c" not in schema
    assert 7 not in schema
    assert schema.select(["b"]) == t.Struct.of(b=t.STRING)
    assert len(schema) == 2
    assert [field.name for field in schema] == ["a", "b"]


def test_an_unknown_field_is_an_error_that_helps() -> None:
    schema = t.Struct.of(temperature=t.DOUBLE, site=t.STRING)
    with pytest.raises(SchemaError, match="no column 'temprature'") as error:
        schema.field("temprature")
    assert error.value.hint == "did you mean 'temperature'?"
    with pytest.raises(SchemaError) as error:
        schema.field("zzz")
    assert error.value.hint == "there are: temperature, site"
    with pytest.raises(SchemaError) as error:
        t.Struct().field("a")
    assert error.value.hint == "there are no columns at all"
    with pytest.raises(SchemaError) as error:
        WIDE.field("%")
    assert len(str(error.value)) < 300


def test_a_struct_is_frozen_hashable_and_survives_copies() -> None:
    schema = t.Struct.of(a=t.LONG, b=t.List(t.STRING))
    with pytest.raises(FrozenInstanceError):
        schema.fields = ()  # type: ignore[misc]
    for other in (pickle.loads(pickle.dumps(schema)), copy.deepcopy(schema), copy.copy(schema)):
        assert other == schema
        assert hash(other) == hash(schema)
        assert other.field("b").type == t.List(t.STRING)
        assert "z" not in other
    assert replace(schema, fields=schema.fields[:1]).names == ("a",)
    assert schema != t.Struct.of(a=t.LONG)
    assert "_positions" not in repr(schema)


def test_lookup_does_not_walk_the_fields() -> None:
    class Watched(tuple[t.Field, ...]):
        __slots__ = ()
        walks = 0

        def __iter__(self):  # type: ignore[no-untyped-def]
            Watched.walks += 1
            return super().__iter__()

    schema = t.Struct(Watched(WIDE.fields))
    Watched.walks = 0
    assert all(schema.field(f"c{n}").name == f"c{n}" for n in range(0, 10_000, 100))
    assert "nope" not in schema
    assert Watched.walks == 0


def test_metadata_is_canonical_text() -> None:
    one = t.Field("a", t.LONG).with_metadata({"b": 1, "a": {"x": [1, "é"]}})
    two = t.Field("a", t.LONG).with_metadata({"a": {"x": [1, "é"]}, "b": 1})
    assert one == two
    assert one.metadata == '{"a":{"x":[1,"é"]},"b":1}'
    assert one.metadata_dict()["a"]["x"] == [1, "é"]


def test_types_as_text() -> None:
    type_ = t.Struct((t.Field("a", t.List(t.Decimal(5, 2))), t.Field("m", t.LONG, False)))
    assert str(type_) == "struct<a: list<decimal(5,2)>, m: long not null>"
    assert str(t.Map(t.STRING, t.LONG)) == "map<string, long>"
    assert repr(t.LONG) == "Primitive('long')"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (t.BYTE, t.SHORT, t.SHORT),
        (t.INTEGER, t.LONG, t.LONG),
        (t.LONG, t.FLOAT, t.DOUBLE),
        (t.INTEGER, t.FLOAT, t.DOUBLE),
        (t.FLOAT, t.FLOAT, t.FLOAT),
        (t.FLOAT, t.DOUBLE, t.DOUBLE),
        (t.Decimal(10, 2), t.LONG, t.Decimal(22, 2)),
        (t.Decimal(10, 2), t.BYTE, t.Decimal(10, 2)),
        (t.Decimal(5, 4), t.Decimal(10, 0), t.Decimal(14, 4)),
        (t.Decimal(38, 0), t.Decimal(38, 10), None),
        (t.Decimal(10, 2), t.DOUBLE, t.DOUBLE),
        (t.DATE, t.TIMESTAMP, t.TIMESTAMP),
        (t.DATE, t.TIMESTAMP_NTZ, t.TIMESTAMP_NTZ),
        (t.TIMESTAMP, t.TIMESTAMP_NTZ, None),
        (t.STRING, t.LONG, None),
        (t.BOOLEAN, t.LONG, None),
        (t.NULL, t.STRING, t.STRING),
        (t.NULL, t.NULL, t.NULL),
        (t.List(t.INTEGER, False), t.List(t.LONG), t.List(t.LONG)),
        (t.List(t.STRING), t.List(t.LONG), None),
        (t.Struct.of(a=t.LONG), t.Struct.of(a=t.LONG), t.Struct.of(a=t.LONG)),
        (t.Struct.of(a=t.LONG), t.Struct.of(a=t.INTEGER), None),
    ],
    ids=str,
)
def test_operands_meet_in_one_type(
    left: t.DataType, right: t.DataType, expected: t.DataType | None
) -> None:
    assert t.common_type(left, right) == expected
    assert t.common_type(right, left) == expected


def test_what_types_are() -> None:
    assert [x for x in (t.BYTE, t.LONG, t.FLOAT, t.STRING) if t.is_integral(x)] == [t.BYTE, t.LONG]
    assert [x for x in (t.LONG, t.FLOAT, t.DOUBLE) if t.is_fractional(x)] == [t.FLOAT, t.DOUBLE]
    assert t.is_numeric(t.Decimal(5, 2))
    assert not t.is_numeric(t.BOOLEAN)
    ordered = (t.STRING, t.BINARY, t.BOOLEAN, t.Decimal(3, 1), t.TIMESTAMP)
    assert all(t.is_orderable(x) for x in ordered)
    unordered = (t.NULL, t.VARIANT, t.List(t.LONG), t.Struct(), t.Map(t.STRING, t.LONG))
    assert not any(t.is_orderable(x) for x in unordered)


def test_only_whole_numbers_and_decimals_are_exact() -> None:
    assert t.as_decimal(t.LONG) == t.Decimal(20, 0)
    with pytest.raises(PlanError, match="double has no exact decimal form"):
        t.as_decimal(t.DOUBLE)
