"""Statistics: bounds that no value exceeds, of every type, and no row that they make us lose."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.write.tables import append, new_table, ours, theirs

import millpond as mp
from millpond.kernel.mapping import TableColumns
from millpond.kernel.write import exactjson
from millpond.kernel.write.stats import FileStatistics, indexed_leaves, loosened, record_count
from millpond.plan import types as t
from millpond.plan.arrow import to_arrow_schema

if TYPE_CHECKING:
    from pathlib import Path

LAST = "\U0010ffff"
UTC = dt.UTC


def stats_of(type_: t.DataType, values: list[Any]) -> dict[str, Any]:
    schema = t.Struct.of(v=type_)
    columns = TableColumns.of(schema, "none", table="t")
    found = FileStatistics(indexed_leaves(columns, (), {}))
    table = pa.Table.from_pylist([{"v": value} for value in values], to_arrow_schema(schema))
    for batch in table.to_batches(max_chunksize=2):  # bounds are brought together
        found.add(batch)
    made: dict[str, Any] = exactjson.loads(found.to_json())
    return made


def bounds(type_: t.DataType, values: list[Any]) -> tuple[Any, Any]:
    found = stats_of(type_, values)
    assert found["numRecords"] == len(values)
    assert found["nullCount"] == {"v": sum(value is None for value in values)}
    return found["minValues"].get("v"), found["maxValues"].get("v")


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        (t.BYTE, [3, None, -128, 127], (-128, 127)),
        (t.SHORT, [3, -5], (-5, 3)),
        (t.INTEGER, [2**31 - 1], (2**31 - 1, 2**31 - 1)),
        (t.LONG, [2**63 - 1, -(2**63)], (-(2**63), 2**63 - 1)),
        (t.FLOAT, [0.5, -1.5], ("-1.5", "0.5")),
        (t.DOUBLE, [1e300, -1e-300], ("-1e-300", "1e+300")),
        (t.DOUBLE, [-0.0], ("-0.0", "0.0")),
        (t.DOUBLE, [0.0, 1.0], ("-0.0", "1.0")),
        (t.DOUBLE, [math.inf, 1.0], ("1.0", None)),
        (t.DOUBLE, [-math.inf, 1.0], (None, "1.0")),
        (t.DOUBLE, [math.nan, 1.0], (None, None)),
        (t.DOUBLE, [1.0, 2.0, 3.0, math.nan], (None, None)),
        (t.Decimal(38, 10), [D("1234567890123456789012345678.0123456789")],
         ("1234567890123456789012345678.0123456789",) * 2),
        (t.Decimal(5, 0), [D(-99999), D(7)], (-99999, 7)),
        (t.STRING, ["b", "a", "é"], ("a", "é")),
        (t.STRING, [""], ("", "")),
        (t.STRING, ["x" * 32], ("x" * 32, "x" * 32)),
        (t.STRING, ["x" * 33], ("x" * 32, "x" * 32 + LAST)),
        (t.STRING, ["x" * 32 + LAST], ("x" * 32, "x" * 32 + LAST)),
        (t.STRING, ["x" * 32 + LAST + "y"], ("x" * 32, "x" * 32 + LAST * 2)),
        (t.STRING, ["😀" * 40], ("😀" * 32, "😀" * 32 + LAST)),
        (t.STRING, ['"\x00\\\n'], ('"\x00\\\n',) * 2),
        (t.DATE, [dt.date(1, 1, 1), dt.date(9999, 12, 31)], ("0001-01-01", "9999-12-31")),
        (t.TIMESTAMP, [dt.datetime(2024, 5, 1, 1, 2, 3, 4999, UTC)],
         ("2024-05-01T01:02:03.004Z", "2024-05-01T01:02:03.005Z")),
        (t.TIMESTAMP, [dt.datetime(1969, 12, 31, 23, 59, 59, 999_001, UTC)],
         ("1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z")),
        (t.TIMESTAMP_NTZ, [dt.datetime(1, 1, 1)],  # noqa: DTZ001
         ("0001-01-01T00:00:00.000",) * 2),
        (t.TIMESTAMP_NTZ, [dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)],  # noqa: DTZ001
         ("9999-12-31T23:59:59.999", None)),
        (t.BINARY, [b"a", None], (None, None)),
        (t.BOOLEAN, [True, False, None], (None, None)),
        (t.List(t.LONG), [[1], None], (None, None)),
        (t.Map(t.STRING, t.LONG), [[("a", 1)], None], (None, None)),
        *((type_, [None, None, None], (None, None)) for type_ in (t.LONG, t.DOUBLE, t.STRING)),
    ],
    ids=str,
)  # fmt: skip
def test_bounds_of_every_type(type_: t.DataType, values: list[Any], expected: Any) -> None:
    assert bounds(type_, values) == expected


def test_times_outside_of_pythons(tmp_path: Path) -> None:
    far = pa.array([2**62, -(2**62), 5], pa.int64())
    table = new_table(tmp_path, t.Struct.of(at=t.TIMESTAMP, n=t.LONG))
    rows = pa.table({"at": far.cast(pa.timestamp("us", "UTC")), "n": [1, 2, 3]})
    table = append(table, rows)
    stats = json.loads(table.files()["stats"][0].as_py())
    assert stats["minValues"] == {"n": 1}
    at = table.scan(["at"], mp.col("n") == 1).to_arrow()["at"]
    assert at.cast(pa.int64()).to_pylist() == [2**62]


def test_nulls_of_structs_are_nulls_of_their_members(tmp_path: Path) -> None:
    schema = t.Struct.of(x=t.Struct.of(a=t.LONG, y=t.Struct.of(b=t.STRING)))
    rows: list[dict[str, Any]] = [
        {"x": None}, {"x": {"a": 1, "y": None}}, {"x": {"a": None, "y": {"b": "z"}}},
    ]  # fmt: skip
    table = append(new_table(tmp_path, schema), rows)
    stats = json.loads(table.files()["stats"][0].as_py())
    assert stats["nullCount"] == {"x": {"a": 2, "y": {"b": 2}}}
    assert stats["maxValues"] == {"x": {"a": 1, "y": {"b": "z"}}}
    assert len(table.files(mp.path("x.y.b") == "q")) == 0
    assert ours(table, predicate=mp.path("x.y.b").is_null()) == rows[:2]


def test_members_whose_names_look_like_paths(tmp_path: Path) -> None:
    schema = t.Struct.of(x=t.Struct.of(**{".a": t.LONG, "[0]": t.LONG, "a.b": t.LONG, "": t.LONG}))
    rows = [{"x": {".a": 1, "[0]": 2, "a.b": 3, "": 4}}]
    table = append(new_table(tmp_path, schema), rows)
    stats = json.loads(table.files()["stats"][0].as_py())
    assert stats["minValues"] == rows[0]
    assert ours(table) == theirs(tmp_path) == rows


def test_how_many_columns_have_statistics(tmp_path: Path) -> None:
    schema = t.Struct.of(a=t.LONG, x=t.Struct.of(b=t.LONG, c=t.LONG), d=t.LONG)
    columns = TableColumns.of(schema, "none", table="t")
    every = [("a",), ("x", "b"), ("x", "c"), ("d",)]
    cases: list[tuple[dict[str, str], list[tuple[str, ...]]]] = [
        ({}, every),
        ({"delta.dataSkippingNumIndexedCols": "2"}, every[:2]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, []),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, every),
        ({"delta.dataSkippingNumIndexedCols": "many"}, every),
        ({"delta.dataSkippingStatsColumns": "d, `x` . `c`"}, [("x", "c"), ("d",)]),
        ({"delta.dataSkippingStatsColumns": "x"}, [("x", "b"), ("x", "c")]),
        ({"delta.dataSkippingStatsColumns": ""}, []),
        ({"delta.dataSkippingStatsColumns": "nope"}, []),
    ]
    for configuration, expected in cases:
        found = [leaf.path for leaf in indexed_leaves(columns, (), configuration)]
        assert found == expected, configuration
    by_d = [leaf.path for leaf in indexed_leaves(columns, ("d",), {})]
    assert by_d == every[:3]


def test_loosened_statistics_keep_their_digits() -> None:
    text = '{"numRecords":3,"minValues":{"d":0.12345678901234567890123,"f":1e-7},"x":[null,"é"]}'
    made = loosened(text, 9)
    assert made.startswith('{"numRecords":9,"minValues":{"d":0.12345678901234567890123,"f":1e-7}')
    assert made.endswith('"x":[null,"é"],"tightBounds":false}')
    for broken in (None, "", "{", "[1]", '{"numRecords": NaN}'):
        assert json.loads(loosened(broken, 4)) == {"numRecords": 4, "tightBounds": False}


@pytest.mark.parametrize("stats", [None, "", "{", "[]", "{}", '{"numRecords":"3"}'])
def test_counts_that_are_not_told(stats: str | None) -> None:
    assert record_count({"stats": stats}) is None


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3) | st.sampled_from(
    ["a" * 40, "a" * 32, "a" * 32 + LAST + "b", LAST * 50, "é" * 33, "\x000\x00"]
)
numbers = st.floats(width=64) | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf])
moments = st.datetimes(timezones=st.just(UTC)) | st.sampled_from(
    [dt.datetime.min.replace(tzinfo=UTC), dt.datetime.max.replace(tzinfo=UTC)]
)
VALUES: dict[str, tuple[t.DataType, st.SearchStrategy[Any]]] = {
    "n": (t.LONG, st.integers(-5, 5) | st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1])),
    "s": (t.STRING, texts),
    "f": (t.DOUBLE, numbers),
    "g": (t.FLOAT, st.floats(width=32)),
    "d": (t.Decimal(38, 6), st.decimals(-(10**31), 10**31, places=6, allow_nan=False)),
    "day": (t.DATE, st.dates()),
    "at": (t.TIMESTAMP, moments),
    "clock": (t.TIMESTAMP_NTZ, st.datetimes()),
    "b": (t.BOOLEAN, st.booleans()),
    "raw": (t.BINARY, st.binary(max_size=3)),
}
SCHEMA = t.Struct.of(row=t.LONG, **{name: type_ for name, (type_, _) in VALUES.items()})
row = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in VALUES.items()})
OPERATORS = ("eq", "ne", "lt", "le", "gt", "ge")


@st.composite
def predicates(draw: st.DrawFn, rows: list[dict[str, Any]]) -> Any:
    name = draw(st.sampled_from(sorted(VALUES)))
    column = mp.col(name)
    kind = draw(st.sampled_from(["compare", "null", "in", "not", "and", "or"]))
    if kind in ("and", "or"):
        left, right = draw(predicates(rows)), draw(predicates(rows))
        return left & right if kind == "and" else left | right
    if kind == "not":
        return ~draw(predicates(rows))
    if kind == "null":
        return column.is_null() if draw(st.booleans()) else column.is_not_null()
    type_, values = VALUES[name]
    known = [r[name] for r in rows if r[name] is not None]
    value = st.sampled_from(known) | values if known else values
    if kind == "in":
        return column.isin(
            [mp.lit(v, type_) for v in draw(st.lists(value, min_size=1, max_size=3))]
        )
    other = mp.lit(draw(value), type_)
    return getattr(column, f"__{draw(st.sampled_from(OPERATORS))}__")(other)


@given(data=st.data())
def test_no_row_is_lost(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Rows in many files, predicates of all kinds: what is scanned is what a filter keeps."""
    rows = data.draw(st.lists(row, min_size=1, max_size=6))
    numbered = [{"row": number, **found} for number, found in enumerate(rows)]
    configuration = {"delta.enableDeletionVectors": "true"} if data.draw(st.booleans()) else {}
    table = new_table(tmp_path_factory.mktemp("t"), SCHEMA, configuration)
    with table.transaction() as tx:
        for start in range(0, len(rows), 2):
            tx.append(numbered[start : start + 2])
    table = table.update()
    gone = data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=2))
    if gone:
        with table.transaction() as tx:
            tx.delete(mp.col("row").isin(sorted(gone)))
        table = table.update()
    left = pa.Table.from_pylist(
        [r for r in numbered if r["row"] not in gone], to_arrow_schema(SCHEMA)
    )
    for _ in range(4):
        predicate = data.draw(predicates(rows))
        expected = mp.values(left).filter(predicate).to_arrow(engine="arrow")["row"].to_pylist()
        found = table.scan(["row"], predicate).to_arrow()["row"].to_pylist()
        assert sorted(found) == sorted(expected), predicate
    with table.transaction() as tx:
        predicate = data.draw(predicates(rows))
        expected = mp.values(left).filter(predicate).to_arrow(engine="arrow")["row"].to_pylist()
        assert tx.delete(predicate) == len(expected)
    remaining = sorted(set(left["row"].to_pylist()) - set(expected))
    table = table.update()
    assert sorted(r["row"] for r in ours(table)) == remaining
    assert sorted(r["row"] for r in theirs(table.location)) == remaining


def test_others_lose_no_row_either(tmp_path: Path) -> None:
    """`deltalake` skips by what is written here: cut texts, zeros, moments, long decimals."""
    from deltalake import DeltaTable as RustTable
    from deltalake import QueryBuilder

    schema = t.Struct.of(s=t.STRING, f=t.DOUBLE, at=t.TIMESTAMP, d=t.Decimal(38, 10))
    big = D("1234567890123456789012345678.0123456789")
    at = dt.datetime(2024, 5, 1, 1, 2, 3, 4999, UTC)
    table = append(
        new_table(tmp_path, schema), [{"s": "x" * 32 + LAST + "y", "f": -0.0, "at": at, "d": big}]
    )
    with table.transaction() as tx:
        tx.append([{"s": "a", "f": math.nan, "at": None, "d": D("0.0000000001")}])
    builder = QueryBuilder().register("t", RustTable(str(tmp_path)))
    wanted = [
        f"s = '{'x' * 32 + LAST + 'y'}'",
        f"s >= '{'x' * 32 + LAST}'",
        "f >= -0.0 and f <= 0.0",
        "at = timestamp '2024-05-01T01:02:03.004999Z'",
        "at > timestamp '2024-05-01T01:02:03.0049Z'",
        "f > 5",
        "d = 0.0000000001",
    ]
    for predicate in wanted:
        found = builder.execute(f"select count(*) n from t where {predicate}").read_all()
        assert pa.table(found).to_pylist() == [{"n": 1}], predicate
