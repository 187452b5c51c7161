"""Types as Arrow types and back, and Arrow's other layouts of the same values."""

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from tests.plan.strategies import data_types, schemas

from millpond.base.errors import PlanError, SchemaError
from millpond.plan import types as t
from millpond.plan.arrow import (
    conform,
    from_arrow,
    from_arrow_schema,
    to_arrow,
    to_arrow_schema,
)


@given(data_types())
def test_types_round_trip(type_: t.DataType) -> None:
    assert from_arrow(to_arrow(type_)) == type_


@given(schemas())
def test_schemas_round_trip_without_metadata(schema: t.Struct) -> None:
    bare = t.Struct(tuple(replace(field, metadata="{}") for field in schema))
    assert from_arrow_schema(to_arrow_schema(schema)) == bare


OTHERS: list[tuple[pa.DataType, t.DataType, Any]] = [
    (pa.large_string(), t.STRING, "x"),
    (pa.string_view(), t.STRING, "x"),
    (pa.large_binary(), t.BINARY, b"x"),
    (pa.binary_view(), t.BINARY, b"x"),
    (pa.binary(2), t.BINARY, b"xy"),
    (pa.uint8(), t.SHORT, 255),
    (pa.uint16(), t.INTEGER, 65535),
    (pa.uint32(), t.LONG, 2**32 - 1),
    (pa.float16(), t.FLOAT, 1.5),
    (pa.date64(), t.DATE, dt.date(2024, 1, 2)),
    (pa.timestamp("ms"), t.TIMESTAMP_NTZ, dt.datetime(2024, 1, 2)),  # noqa: DTZ001
    (pa.timestamp("s", "Europe/Rome"), t.TIMESTAMP, dt.datetime(2024, 1, 2, tzinfo=dt.UTC)),
    (pa.dictionary(pa.int8(), pa.string()), t.STRING, "x"),
    (pa.large_list(pa.int64()), t.List(t.LONG), [1]),
    (pa.list_(pa.int64(), 2), t.List(t.LONG), [1, 2]),
    (pa.decimal256(10, 2), t.Decimal(10, 2), decimal.Decimal("1.50")),
    (pa.decimal64(10, 2), t.Decimal(10, 2), decimal.Decimal("1.50")),
    (pa.null(), t.NULL, None),
]


@pytest.mark.parametrize(("theirs", "ours", "value"), OTHERS, ids=lambda x: str(x))
def test_other_layouts_hold_the_same_values(
    theirs: pa.DataType, ours: t.DataType, value: Any
) -> None:
    assert from_arrow(theirs) == ours
    table = pa.table({"a": pa.array([value, None], theirs)})
    plain = conform(table, from_arrow_schema(table.schema))
    assert plain.schema.field("a").type == to_arrow(ours)
    assert plain.column("a").to_pylist() == [value, None]


def test_an_extension_is_its_storage() -> None:
    table = pa.table({"a": pa.array([b"0123456789abcdef"], pa.uuid())})
    plain = conform(table, from_arrow_schema(table.schema))
    assert plain.column("a").to_pylist() == [b"0123456789abcdef"]


@pytest.mark.parametrize(
    "theirs",
    [
        pa.uint64(),
        pa.time64("us"),
        pa.duration("s"),
        pa.list_view(pa.int8()),
    ],
    ids=str,
)
def test_what_would_lose_values_is_refused(theirs: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="has no counterpart") as error:
        from_arrow(theirs)
    assert "cast it first" in str(error.value)


def test_the_hint_for_types_without_counterpart_leads_somewhere() -> None:
    table = pa.table(
        {
            "u": pa.array([2**64 - 1], pa.uint64()).cast(pa.decimal128(20, 0)),
            "t": pa.array([7], pa.time64("us")).cast(pa.int64()),
            "d": pa.array([-7], pa.duration("s")).cast(pa.int64()),
        }
    )
    plain = conform(table, from_arrow_schema(table.schema))
    assert plain.to_pylist() == [{"u": 2**64 - 1, "t": 7, "d": -7}]


def test_nanoseconds_that_are_whole_microseconds_fit() -> None:
    utc = pa.timestamp("ns", "UTC")
    table = pa.table(
        {"a": pa.array([-7000], pa.timestamp("ns")), "b": pa.array([[1000]], pa.list_(utc))}
    )
    schema = from_arrow_schema(table.schema)
    assert schema == t.Struct.of(a=t.TIMESTAMP_NTZ, b=t.List(t.TIMESTAMP))
    assert conform(table, schema).column("a").cast(pa.int64()).to_pylist() == [-7]


def test_nanoseconds_that_are_lost_name_their_column() -> None:
    table = pa.table({"k": [1], "at": pa.array([1001], pa.timestamp("ns"))})
    with pytest.raises(SchemaError, match="column 'at' is timestamp\\[ns\\]") as error:
        conform(table, from_arrow_schema(table.schema))
    assert "round it before" in str(error.value.hint)


@pytest.mark.parametrize("theirs", [pa.decimal256(60, 2), pa.decimal128(5, -2)], ids=str)
def test_decimals_beyond_38_digits_are_refused(theirs: pa.DataType) -> None:
    with pytest.raises(PlanError, match="can't exist"):
        from_arrow(theirs)


def test_what_does_not_fit_is_an_error_of_ours() -> None:
    table = pa.table({"a": pa.array([2**62], pa.timestamp("s"))})
    with pytest.raises(SchemaError, match=r"column 'a' is timestamp\[s\] and does not fit"):
        conform(table, from_arrow_schema(table.schema))


def test_names_of_list_elements_and_metadata_are_made_plain() -> None:
    item = pa.field("item", pa.int64())
    schema = pa.schema([pa.field("a", pa.list_(item), metadata={"k": "v"})], metadata={"x": "y"})
    table = pa.table({"a": [[1]]}, schema=schema)
    plain = conform(table, from_arrow_schema(table.schema))
    assert plain.schema.metadata is None
    assert plain.schema.field("a").metadata is None
    assert plain.schema.field("a").type.value_field.name == "element"
    assert conform(plain, from_arrow_schema(plain.schema)) is plain


def test_a_list_that_is_always_empty_has_a_type() -> None:
    assert to_arrow(t.List(t.NULL, False)).value_field.nullable


def test_variants_are_known() -> None:
    assert to_arrow(t.VARIANT) == pa.struct(
        [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)]
    )
