"""Paths: members, elements, `[*]`, maps; through nulls, slices and odd layouts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.engine.arrow.columns import to_python, value_of

from millpond.base.errors import SchemaError
from millpond.engine.arrow.eval import evaluate
from millpond.plan.arrow import from_arrow_schema, to_arrow
from millpond.plan.bind import bind
from millpond.plan.expr import col, path
from millpond.plan.types import LONG, STRING, List, Map, Struct

LEAF = Struct.of(n=STRING, k=List(LONG))
TREE = Struct.of(
    x=LONG, c=List(LEAF), m=Map(STRING, Struct.of(v=LONG)), deep=Struct.of(c=List(LEAF))
)
ROWS: list[Any] = [
    {
        "x": 1,
        "c": [{"n": "a", "k": [1, 2]}, None, {"n": None, "k": None}],
        "m": [("p", {"v": 5}), ("q", None)],
        "deep": {"c": [{"n": "z", "k": []}]},
    },
    None,
    {"x": None, "c": None, "m": None, "deep": None},
    {"x": 4, "c": [], "m": [], "deep": {"c": None}},
    {"x": 5, "c": [{"n": "b", "k": [3]}], "m": [("p", {"v": None})], "deep": {"c": [None]}},
]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("o", ROWS),
        ("o.x", [1, None, None, 4, 5]),
        ("o.c[0].n", ["a", None, None, None, "b"]),
        ("o.c[1].n", [None] * 5),
        ("o.c[-1].n", [None, None, None, None, "b"]),
        ("o.c[-3].n", ["a", None, None, None, None]),
        ("o.c[7].n", [None] * 5),
        ("o.c[-7].n", [None] * 5),
        ("o.c[0].k[-1]", [2, None, None, None, 3]),
        ("o.c[*].n", [["a", None, None], None, None, [], ["b"]]),
        ("o.c[*].k", [[[1, 2], None, None], None, None, [], [[3]]]),
        ("o.c[*].k[*]", [[[1, 2], None, None], None, None, [], [[3]]]),
        ("o.c[*].k[0]", [[1, None, None], None, None, [], [3]]),
        ("o.deep.c[*].k[*]", [[[]], None, None, None, [None]]),
        ("o.m.p.v", [5, None, None, None, None]),
        ("o.m.q", [None] * 5),
        ("o.m.p", [{"v": 5}, None, None, None, {"v": None}]),
        ("o.m.nowhere.v", [None] * 5),
    ],
)
def test_path(text: str, wanted: list[Any]) -> None:
    assert value_of(path(text), o=(TREE, ROWS)) == wanted


def test_the_first_of_repeated_map_keys_counts() -> None:
    maps = [[("a", 1), ("b", 2), ("a", 3)], None, [("b", 4)], [("a", None)], [("", 5)]]
    assert value_of(path("m.a"), m=(Map(STRING, LONG), maps)) == [1, None, None, None, None]
    assert value_of(path("m.b"), m=(Map(STRING, LONG), maps)) == [2, None, 4, None, None]
    assert value_of(path('m.""'), m=(Map(STRING, LONG), maps)) == [None] * 4 + [5]


def test_names_with_dots_and_case() -> None:
    schema_values: dict[str, Any] = {"a.b": (LONG, [1]), "A": (LONG, [2]), "a": (LONG, [3])}
    assert value_of(col("a.b"), **schema_values) == [1]
    assert value_of(col("A") + col("a"), **schema_values) == [5]


def test_odd_layouts_come_out_plain() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "d": pa.array(["x", None, "x"]).dictionary_encode(),
            "large": pa.array(["a", "b", None], pa.large_string()),
            "view": pa.array(["a", None, "b"], pa.string_view()),
            "fixed": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)),
            "big": pa.array([[1], [], None], pa.large_list(pa.int64())),
            "ms": pa.array([1, None, 2], pa.timestamp("ms", tz="Europe/Berlin")),
            "u": pa.array([255, None, 0], pa.uint8()),
            "s": pa.array(
                [{"e": ["q"]}, None, {"e": None}],
                pa.struct([("e", pa.list_(pa.dictionary(pa.int8(), pa.string())))]),
            ),
        }
    )
    schema = from_arrow_schema(batch.schema)
    wanted: dict[str, list[Any]] = {
        "d": ["x", None, "x"],
        "large": ["a", "b", None],
        "view": ["a", None, "b"],
        "fixed": [[1, 2], None, [3, 4]],
        "big": [[1], [], None],
        "ms": [1000, None, 2000],
        "u": [255, None, 0],
        "s": [{"e": ["q"]}, None, {"e": None}],
    }
    for name, values in wanted.items():
        for cut in (0, 1):
            expr = bind(col(name), schema)
            found = evaluate(expr, batch.slice(cut))
            assert found.type == to_arrow(expr.type)
            found.validate(full=True)
            assert to_python(found) == values[cut:]
    tests = {"d": "x", "large": "a", "view": "a"}
    for name, text in tests.items():
        found = evaluate(bind(col(name) == text, schema), batch)
        assert found.to_pylist()[0] is True
    assert evaluate(bind(path("s.e").contains("q"), schema), batch).to_pylist() == [
        True,
        None,
        None,
    ]


def test_other_child_names_and_nullability_are_taken_over() -> None:
    child = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    array = pa.array([[{"x": 1}], None, []], pa.list_(pa.field("item", child, nullable=False)))
    batch = pa.RecordBatch.from_arrays([array], ["l"])
    schema = Struct.of(l=List(Struct.of(x=LONG)))
    for cut in (0, 1):
        found = evaluate(bind(col("l"), schema), batch.slice(cut))
        assert found.type == to_arrow(schema.field("l").type)
        assert found.to_pylist() == [[{"x": 1}], None, []][cut:]


def test_a_missing_column_is_named() -> None:
    batch = pa.RecordBatch.from_pydict({"b": [1]})
    with pytest.raises(SchemaError, match="no column 'a'"):
        evaluate(bind(col("a"), Struct.of(a=LONG)), batch)


def test_a_struct_without_members() -> None:
    empty = Struct(())
    assert value_of(col("e").is_null(), e=(empty, [{}, None])) == [False, True]
    assert value_of(col("e"), e=(empty, [{}, None])) == [{}, None]
