"""Variants whose parts are columns are whole again, whatever was taken out of them."""

from __future__ import annotations

import datetime as dt
import json
import struct
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import VariantVal
from tests.engine.arrow.variant.shredding import (
    EMPTY,
    Shape,
    encoded,
    group,
    lists,
    metadata_of,
    objects,
    shredded,
    variant,
)

from millpond.base.errors import SourceError
from millpond.plan import types as t
from millpond.plan.expr import col
from millpond.plan.run import engine_named
from millpond.plan.sources import File, Scan

if TYPE_CHECKING:
    from pathlib import Path

LONGS = group(pa.int64())


def read(file: Path, array: pa.Array, wanted: t.DataType = t.VARIANT, **options: Any) -> list[Any]:
    """What is read of a column that is stored like this."""
    pq.write_table(pa.table({"v": array}), file, **options)
    return rows_of(Scan("parquet", (File(str(file)),), t.Struct.of(v=wanted)))


def rows_of(plan: Any) -> list[Any]:
    run = engine_named("arrow").execute(plan)
    table = pa.Table.from_batches(list(run), schema=run.schema)
    table.validate(full=True)
    found: list[Any] = table.column("v").to_pylist()
    return found


def value_of(whole: dict[str, bytes] | None) -> Any:
    """A variant as Python has it, by Spark's own decoder."""
    return None if whole is None else VariantVal(whole["value"], whole["metadata"]).toPython()


MOMENT = dt.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
MICROS = (MOMENT - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
SCALARS: list[tuple[pa.DataType, Any, bytes]] = [
    (pa.bool_(), True, b"\x04"),
    (pa.bool_(), False, b"\x08"),
    (pa.int8(), -128, b"\x0c\x80"),
    (pa.int64(), 127, b"\x0c\x7f"),
    (pa.int16(), 128, b"\x10\x80\x00"),
    (pa.int16(), -129, b"\x10\x7f\xff"),
    (pa.int32(), 2**15, b"\x14\x00\x80\x00\x00"),
    (pa.int64(), -(2**31), b"\x14\x00\x00\x00\x80"),
    (pa.int64(), 2**31, b"\x18" + struct.pack("<q", 2**31)),
    (pa.int64(), -(2**63), b"\x18" + struct.pack("<q", -(2**63))),
    (pa.float32(), 1.5, b"\x38" + struct.pack("<f", 1.5)),
    (pa.float64(), -0.0, b"\x1c" + struct.pack("<d", -0.0)),
    (pa.decimal128(9, 2), D("-1.20"), b"\x20\x02" + struct.pack("<i", -120)),
    (pa.decimal128(38, 2), D("9999999.99"), b"\x20\x02" + struct.pack("<i", 999_999_999)),
    (pa.decimal128(18, 2), D("10000000.00"), b"\x24\x02" + struct.pack("<q", 10**9)),
    (pa.decimal128(18, 10), D("0.0000000001"), b"\x24\x0a" + struct.pack("<q", 1)),
    (
        pa.decimal128(38, 0),
        D(-(10**18)),
        b"\x28\x00" + (-(10**18)).to_bytes(16, "little", signed=True),
    ),
    (pa.decimal128(38, 0), D(10**38 - 1), b"\x28\x00" + (10**38 - 1).to_bytes(16, "little")),
    (pa.date32(), dt.date(1969, 12, 31), b"\x2c\xff\xff\xff\xff"),
    (pa.timestamp("us", tz="UTC"), MOMENT, b"\x30" + struct.pack("<q", MICROS)),
    (pa.timestamp("us", tz="Europe/Oslo"), MOMENT, b"\x30" + struct.pack("<q", MICROS)),
    (pa.timestamp("us"), MOMENT.replace(tzinfo=None), b"\x34" + struct.pack("<q", MICROS)),
    (pa.timestamp("ns", tz="UTC"), 1, b"\x48" + struct.pack("<q", 1)),
    (pa.timestamp("ns"), -1, b"\x4c" + struct.pack("<q", -1)),
    (pa.time64("us"), dt.time(0, 0, 1), b"\x44" + struct.pack("<q", 1_000_000)),
    (pa.binary(), b"\x00\xff", b"\x3c\x02\x00\x00\x00\x00\xff"),
    (pa.large_binary(), b"", b"\x3c\x00\x00\x00\x00"),
    (pa.string(), "", b"\x01"),
    (pa.string(), "é", b"\x09\xc3\xa9"),
    (pa.string(), "x" * 63, b"\xfd" + b"x" * 63),
    (pa.string(), "x" * 64, b"\x40\x40\x00\x00\x00" + b"x" * 64),
    (pa.large_string(), "hi", b"\x09hi"),
    (pa.dictionary(pa.int32(), pa.string()), "hi", b"\x09hi"),
]


@pytest.mark.parametrize(("type_", "value", "expected"), SCALARS)
def test_plain_values(type_: pa.DataType, value: Any, expected: bytes, tmp_path: Path) -> None:
    pieces = [(None, value), (b"\x00", None), (None, value)]
    made = [{"metadata": EMPTY, "value": v, "typed_value": typed} for v, typed in pieces]
    found = read(tmp_path / "a.parquet", pa.array([*made, None], variant(type_)))
    wholes = [{"value": v, "metadata": EMPTY} for v in (expected, b"\x00", expected)]
    assert found == [*wholes, None]


def test_uuids(tmp_path: Path) -> None:
    raw = bytes(range(16))
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([raw, None], pa.binary(16)))
    metadata, value = pa.array([EMPTY] * 2, pa.binary()), pa.array([None, b"\x00"], pa.binary())
    array = pa.StructArray.from_arrays(
        [metadata, value, ids], names=["metadata", "value", "typed_value"]
    )
    found = read(tmp_path / "a.parquet", array)
    assert [row["value"] for row in found] == [b"\x50" + raw, b"\x00"]


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
_NAMES = st.sampled_from(["a", "b", "ab", "value", "typed_value", "é", "\uffff", "\U0001f600"])
_PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS
    | st.text("x", min_size=62, max_size=66)
)
VALUES = st.recursive(
    _PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=5),
    max_leaves=20,
)
SHAPES = st.recursive(
    st.sampled_from([None, pa.int64(), pa.float64(), pa.bool_(), pa.string()]).map(Shape),
    lambda inner: (
        st.dictionaries(_NAMES, inner, min_size=1, max_size=4).map(lambda m: Shape(members=m))
        | inner.map(lambda one: Shape(elements=one))
    ),
    max_leaves=6,
)


def _is_in_order(value: Any) -> bool:
    """Whether members of objects stand in the order of their names' bytes, as they must."""
    if isinstance(value, dict):
        names = [name.encode() for name in value]
        return names == sorted(names) and all(map(_is_in_order, value.values()))
    return all(map(_is_in_order, value)) if isinstance(value, list) else True


@given(values=st.lists(VALUES, max_size=6), shape=SHAPES)
def test_what_was_taken_to_pieces_is_whole_again(
    values: list[Any], shape: Shape, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "pieces.parquet"
    stored = pa.array([*(shredded(one, shape) for one in values), None], shape.variant)
    *found, last = map(value_of, read(file, stored))
    assert last is None
    assert all(map(_is_in_order, found))
    # As JSON, in which 1, 1.0 and true are not the same.
    assert [json.dumps(one, sort_keys=True) for one in found] == [
        json.dumps(one, sort_keys=True) for one in values
    ]


@given(
    value=st.dictionaries(_NAMES, VALUES, min_size=1),
    part=st.sampled_from(["metadata", "value"]),
    place=st.integers(0, 200),
    byte=st.integers(0, 255),
)
def test_damaged_bytes_are_read_or_named(
    value: Any, part: str, place: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shape = Shape(members={"a": Shape(pa.int64()), "not there": Shape()})
    row = shredded(value, shape)
    raw = row[part] or b"\x00"
    at = place % len(raw)
    row[part] = raw[:at] + bytes([byte]) + raw[at + 1 :]
    file = tmp_path_factory.getbasetemp() / "damaged.parquet"
    problem = "holds a broken variant"
    try:
        [found] = read(file, pa.array([row], shape.variant))
        assert found["metadata"] == row["metadata"]
    except SourceError as error:
        problem = error.message
    assert "holds a broken variant" in problem


@pytest.mark.parametrize("count", [255, 256, 300])
def test_many_members_and_elements(count: int, tmp_path: Path) -> None:
    names = [f"m{i:03}" for i in range(count)]
    value = {"list": list(range(count)), "object": dict.fromkeys(names, "x" * 300)}
    members = {name: Shape(pa.string()) for name in names}
    numbers, texts = Shape(elements=Shape(pa.int64())), Shape(members=members)
    shape = Shape(members={"list": numbers, "object": texts})
    stored = pa.array([shredded(value, shape)], shape.variant)
    [found] = read(tmp_path / "a.parquet", stored)
    assert value_of(found) == value


def test_offsets_and_ids_take_no_more_bytes_than_they_need(tmp_path: Path) -> None:
    metadata = metadata_of([*(f"n{i}" for i in range(300)), "a"])
    member = {"a": {"value": None, "typed_value": 1}}
    row = {"metadata": metadata, "value": None, "typed_value": member}
    [found] = read(tmp_path / "a.parquet", pa.array([row], variant(objects(a=LONGS))))
    # An id of two bytes, offsets of one.
    assert found == {"metadata": metadata, "value": bytes.fromhex("12 01 2c01 00 02 0c 01")}


@pytest.mark.parametrize("rest", [{}, {"c": 3, "\x00": 4}])
def test_members_stand_in_the_order_of_their_names(rest: dict[str, int], tmp_path: Path) -> None:
    """By bytes of UTF-8, by which the last two stand the other way round than in UTF-16."""
    names = ["b", "\U0001f600", "a", "\uffff", "ab"]
    value = {**dict.fromkeys(names, 1), **rest}
    shape = Shape(members={name: Shape(pa.int64()) for name in names})
    [found] = read(tmp_path / "a.parquet", pa.array([shredded(value, shape)], shape.variant))
    expected = ["a", "ab", "b", "\uffff", "\U0001f600"]
    if rest:
        expected = ["\x00", "a", "ab", "b", "c", "\uffff", "\U0001f600"]
    assert list(value_of(found)) == expected


def test_a_variant_without_a_column_for_the_rest(tmp_path: Path) -> None:
    typed = objects(a=group(pa.int64(), value=False), b=group(None))
    member = {"a": {"typed_value": 7}, "b": {"value": encoded([1])}}
    array = pa.array(
        [{"metadata": metadata_of(["b", "a"]), "typed_value": member}], variant(typed, value=False)
    )
    assert list(map(value_of, read(tmp_path / "a.parquet", array))) == [{"a": 7, "b": [1]}]


def test_what_is_missing_where_a_value_has_to_be_is_null(tmp_path: Path) -> None:
    neither = {"value": None, "typed_value": None}
    typed = lists(LONGS)
    rows = [
        {"metadata": EMPTY, **neither},
        {"metadata": EMPTY, **neither, "typed_value": [neither]},
    ]
    found = read(tmp_path / "a.parquet", pa.array([*rows, None], variant(typed)))
    assert [row and row["value"] for row in found] == [b"\x00", b"\x03\x01\x00\x01\x00", None]
    whole = pa.array([{"metadata": EMPTY, "value": None}, None], variant(None))
    assert read(tmp_path / "b.parquet", whole) == [{"value": b"\x00", "metadata": EMPTY}, None]


def test_members_that_are_null_are_not_missing(tmp_path: Path) -> None:
    members = {
        "a": {"value": b"\x00", "typed_value": None},
        "b": {"value": None, "typed_value": None},
    }
    row = {"metadata": metadata_of(["a", "b"]), "value": None, "typed_value": members}
    array = pa.array([row], variant(objects(a=LONGS, b=LONGS)))
    assert list(map(value_of, read(tmp_path / "a.parquet", array))) == [{"a": None}]


A_IS_7 = encoded({"a": 7}, ["a"])
CONTRADICTIONS: list[tuple[str, pa.DataType, Any, Any, str]] = [
    ("both", pa.int64(), encoded(5), 6, r"\$ has a value and a typed value"),
    ("a list, too", lists(LONGS), encoded([]), [], r"\$ has a value and a typed value"),
    (
        "a column and the rest",
        objects(a=LONGS),
        A_IS_7,
        {"a": {"value": None, "typed_value": 6}},
        r"\$ has the member a twice",
    ),
    (
        "no value in the column, but in the rest",
        objects(a=LONGS),
        A_IS_7,
        {"a": {"value": None, "typed_value": None}},
        r"\$ has the member a twice",
    ),
    (
        "the rest is no object",
        objects(a=LONGS),
        encoded(5),
        {"a": {"value": None, "typed_value": None}},
        r"\$ has a typed value that is an object, and a value that is none",
    ),
    (
        "a name that is not known",
        objects(z=LONGS),
        None,
        {"z": {"value": None, "typed_value": 6}},
        r"\$ has a member z, which metadata does not name",
    ),
    (
        "an id that is not known",
        objects(b=LONGS),
        encoded({"z": 7}, [*"abcdef", "z"]),
        {"b": {"value": None, "typed_value": None}},
        r"\$ has a member with the id 6",
    ),
    (
        "a value that ends too early",
        objects(b=LONGS),
        A_IS_7[:-1],
        {"b": {"value": None, "typed_value": None}},
        r"\$ has a value that is cut off",
    ),
    (
        "no value at all",
        objects(b=LONGS),
        b"",
        {"b": {"value": None, "typed_value": None}},
        r"\$ has a value that is cut off",
    ),
    (
        "a type that is not known",
        objects(b=LONGS),
        bytes.fromhex("02 01 00 00 01 54"),
        {"b": {"value": None, "typed_value": None}},
        r"\$ has a value that holds one of the type 21",
    ),
]


@pytest.mark.parametrize(
    ("typed", "value", "typed_value", "message"),
    [case[1:] for case in CONTRADICTIONS],
    ids=[case[0] for case in CONTRADICTIONS],
)
def test_pieces_that_contradict_each_other(
    typed: pa.DataType, value: Any, typed_value: Any, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.parquet"
    row = {"metadata": metadata_of(["a", "b"]), "value": value, "typed_value": typed_value}
    with pytest.raises(SourceError, match=f"column v of {file} .*{message}") as caught:
        read(file, pa.array([row], variant(typed)))
    assert caught.value.path == str(file)
    assert caught.value.hint


def test_the_place_of_a_contradiction_is_named(tmp_path: Path) -> None:
    member = group(lists(LONGS))
    both = {"value": encoded(5), "typed_value": 6}
    row = {
        "metadata": metadata_of(["a"]),
        "value": None,
        "typed_value": {"a": {"value": None, "typed_value": [both]}},
    }
    array = pa.array([row], variant(objects(a=member)))
    with pytest.raises(SourceError, match=r"broken variant: \$\.a\[\] has a value and"):
        read(tmp_path / "a.parquet", array)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (b"", "cut off"),
        (b"\x02\x00\x00", "version 2"),
        (b"\x01\x02\x00\x01", "cut off"),
        (b"\x01\x01\x00\x05a", "cut off"),
        (b"\x01\x02\x01\x00\x01a", "cut off"),
    ],
)
def test_metadata_that_is_none(metadata: bytes, message: str, tmp_path: Path) -> None:
    member = {"a": {"value": None, "typed_value": 6}}
    row = {"metadata": metadata, "value": None, "typed_value": member}
    with pytest.raises(SourceError, match=rf"\$ has metadata that is .*{message}"):
        read(tmp_path / "a.parquet", pa.array([row], variant(objects(a=LONGS))))


def test_metadata_that_is_not_there(tmp_path: Path) -> None:
    type_ = pa.struct([("metadata", pa.binary()), ("typed_value", pa.int64())])
    array = pa.array([{"metadata": None, "typed_value": 1}], type_)
    with pytest.raises(SourceError, match=r"\$ has no metadata"):
        read(tmp_path / "a.parquet", array)


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (variant(pa.uint8()), "column v of .* has uint8 for a part of it"),
        (variant(pa.timestamp("ms")), r"column v of .* has timestamp\[ms\] for a part"),
        (variant(pa.binary(16)), r"has fixed_size_binary\[16\] for a part"),
        (variant(pa.decimal256(40, 2)), "has decimal256"),
        (variant(pa.map_(pa.string(), pa.int64())), "has map"),
        (variant(objects(a=pa.int64())), r"column v\.a of .* is int64"),
        (variant(lists(pa.int64())), r"column v\[\] of .* is int64"),
        (variant(objects(a=group(pa.uint8()))), r"column v\.a of .* has uint8"),
        (variant(objects(a=pa.struct([("x", pa.int64())]))), r"column v\.a of .* variant"),
        (group(pa.int64()), "can't be read as variant"),
        (pa.struct([("metadata", pa.binary())]), "can't be read as variant"),
        (pa.struct([("metadata", pa.binary()), ("value", pa.int64())]), "can't be read as variant"),
        (pa.struct([*variant(pa.int64()), ("more", pa.int64())]), "can't be read as variant"),
    ],
)
def test_columns_that_are_no_variants(type_: pa.DataType, message: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=message):
        read(tmp_path / "a.parquet", pa.array([None], type_))


@pytest.mark.parametrize("bytes_", [pa.large_binary(), pa.binary_view()])
@pytest.mark.parametrize("typed", [None, pa.large_string(), pa.string_view()])
def test_bytes_and_texts_of_any_layout(
    bytes_: pa.DataType, typed: pa.DataType | None, tmp_path: Path
) -> None:
    members = [("metadata", bytes_), ("value", bytes_)] + [("typed_value", typed)] * bool(typed)
    whole = {"metadata": EMPTY, "value": b"\x0c\x05"}
    pieces = {"metadata": EMPTY, "typed_value": "text"}
    array = pa.array([whole, None, pieces if typed else whole], pa.struct(members))
    found = read(tmp_path / "0.parquet", array)
    assert list(map(value_of, found)) == [5, None, "text" if typed else 5]


def test_times_in_96_bits_are_refused(tmp_path: Path) -> None:
    row = {"metadata": EMPTY, "value": None, "typed_value": MOMENT}
    array = pa.array([row], variant(pa.timestamp("us", tz="UTC")))
    with pytest.raises(SourceError, match=r"column v.typed_value of .* times in 96 bits"):
        read(
            tmp_path / "a.parquet", array, use_deprecated_int96_timestamps=True, store_schema=False
        )


SHAPE = Shape(members={"a": Shape(pa.int64()), "t": Shape(elements=Shape(pa.string()))})


def _in_struct(row: Any) -> Any:
    return {"m": row, "n": 1}


@pytest.mark.parametrize(
    ("around", "type_", "wanted"),
    [
        (_in_struct, lambda v: pa.struct([("n", pa.int64()), ("m", v)]), t.Struct.of(m=t.VARIANT)),
        (lambda row: [row, None, row], pa.list_, t.List(t.VARIANT)),
        (
            lambda row: [("k", row), ("l", None)],
            lambda v: pa.map_(pa.string(), v),
            t.Map(t.STRING, t.VARIANT),
        ),
        (
            lambda row: [{"m": row}, {"m": None}, None],
            lambda v: pa.list_(pa.struct([("m", v)])),
            t.List(t.Struct.of(m=t.VARIANT)),
        ),
    ],
    ids=["struct", "list", "map", "list of structs"],
)
def test_variants_within_other_values(
    around: Any, type_: Any, wanted: t.DataType, tmp_path: Path
) -> None:
    value = {"a": 1, "t": ["x", 2, "y"], "more": {"b": None}}
    stored = pa.array([around(shredded(value, SHAPE)), None], type_(SHAPE.variant))
    found = read(tmp_path / "a.parquet", stored, wanted)
    assert found[1] is None
    expected = around(value)
    expected = {"m": value} if isinstance(expected, dict) else expected
    assert _decoded(found[0]) == expected


def _decoded(found: Any) -> Any:
    if isinstance(found, dict) and found.keys() == {"value", "metadata"}:
        return value_of(found)
    if isinstance(found, dict):
        return {name: _decoded(member) for name, member in found.items()}
    if isinstance(found, list | tuple):
        return type(found)(map(_decoded, found))
    return found


ROWS = 20_000


def _many(row: int) -> Any:
    kinds = ({"a": row, "t": ["x", f"y{row % 3}"]}, {"a": "z", "b": row % 5}, row % 7, None)
    return kinds[row % 4]


@pytest.mark.parametrize("nulls", [True, False])
def test_few_rows_of_many(tmp_path: Path, nulls: bool) -> None:
    """Texts that repeat are read as dictionaries, and those of few rows picked by themselves."""
    values = [_many(row) for row in range(ROWS)]
    made = [None if nulls and row % 11 == 0 else shredded(v, SHAPE) for row, v in enumerate(values)]
    file = tmp_path / "a.parquet"
    n = pa.array(range(ROWS))
    pq.write_table(pa.table({"n": n, "v": pa.array(made, SHAPE.variant)}), file)
    scan = Scan("parquet", (File(str(file)),), t.Struct.of(n=t.LONG, v=t.VARIANT))
    expected = [None if nulls and row % 11 == 0 else v for row, v in enumerate(values)]
    assert list(map(value_of, rows_of(scan))) == expected
    few = scan.filter((col("n") > 17_000) & (col("n") % 997 == 0))
    assert list(map(value_of, rows_of(few))) == [
        v for row, v in enumerate(expected) if row > 17_000 and row % 997 == 0
    ]
    missing = sum(one is None for one in made)
    assert len(rows_of(scan.filter(col("v").is_null()))) == missing


@pytest.mark.parametrize(
    ("around", "type_", "wanted", "inner"),
    [
        (lambda row: [row], pa.list_, t.List(t.VARIANT), lambda found: found[0]),
        (
            lambda row: [("k", row)],
            lambda v: pa.map_(pa.string(), v),
            t.Map(t.STRING, t.VARIANT),
            lambda found: found[0][1],
        ),
    ],
    ids=["lists", "maps"],
)
def test_many_rows_of_variants_within_others(
    around: Any, type_: Any, wanted: t.DataType, inner: Any, tmp_path: Path
) -> None:
    values = [_many(row) for row in range(ROWS)]
    made = [around(shredded(value, SHAPE)) for value in values]
    found = read(tmp_path / "a.parquet", pa.array(made, type_(SHAPE.variant)), wanted)
    assert [value_of(inner(row)) for row in found] == values
