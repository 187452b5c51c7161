"""parse_json: what fits what, text that is not JSON, and that both readers agree."""

from __future__ import annotations

import decimal
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.arrow.columns import to_python, value_of

from millpond.engine.arrow.eval.json_exact import read_exactly
from millpond.plan.arrow import to_arrow
from millpond.plan.expr import col
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    Map,
    Struct,
)

D = decimal.Decimal
NAN, INF = float("nan"), float("inf")
MAY = 1_717_156_800_000_000
"""2024-05-31 12:00:00"""

# type, then JSON values and what they are read as; what does not fit is None
MEMBERS: list[tuple[DataType, dict[str, Any]]] = [
    (INTEGER, {"1": 1, "-0": 0, '"1"': None, "1.0": None, "1e3": None, "true": None}),
    (INTEGER, {"2147483647": 2147483647, "2147483648": None, "null": None, "{}": None}),
    (BYTE, {"127": 127, "128": None, "-128": -128}),
    (LONG, {"9223372036854775807": (1 << 63) - 1, "9223372036854775808": None, "9" * 50: None}),
    (DOUBLE, {"1": 1.0, "0.1": 0.1, "1e400": INF, '"1.5"': None, "true": None}),
    (DOUBLE, {'"NaN"': NAN, '"Infinity"': INF, '"-Infinity"': -INF, '"inf"': None}),
    (FLOAT, {"0.1": 0.10000000149011612, "1e300": INF}),
    (Decimal(5, 2), {"1": D("1.00"), "1.005": D("1.01"), "1e2": D("100.00"), "12345678": None}),
    (Decimal(5, 2), {'"1.5"': D("1.50"), '"x"': None, "true": None}),
    (BOOLEAN, {"true": True, "false": False, '"true"': None, "1": None, "null": None}),
    (STRING, {'"x"': "x", "2": "2", "1.10": "1.1", "1e5": "100000.0", "true": "true"}),
    (STRING, {'{"x": 1, "y" : [1, 2.50]}': '{"x":1,"y":[1,2.5]}', "[1, 2]": "[1,2]"}),
    (STRING, {'""': "", "null": None, '"\\u00e9\\ud800"': "é?", '{"a":1,"a":2}': '{"a":1,"a":2}'}),
    (STRING, {'["\\u001f\\n\\"/é"]': '["\\u001F\\n\\"/é"]', "9" * 30: "9" * 30}),
    (STRING, {"1e400": '"Infinity"', "-0": "0", "-0.0": "-0.0", "1E10": "1.0E10", "NaN": '"NaN"'}),
    (BINARY, {'"QUJD"': b"ABC", '"not base64!"': None, "1": None}),
    (DATE, {'"2024-05-31"': 19874, '"2024-05-31T12:00:00Z"': 19874, "19000": None, '"x"': None}),
    (TIMESTAMP, {'"2024-05-31T12:00:00Z"': MAY, '"2024-05-31 14:00:00+02:00"': MAY, "1.5": None}),
    (TIMESTAMP_NTZ, {'"2024-05-31T12:00:00"': MAY, '"2024-05-31T12:00:00Z"': None}),
    (Struct.of(x=LONG), {'{"x":1}': {"x": 1}, '{"x":"bad"}': {"x": None}, "{}": {"x": None}}),
    (Struct.of(x=LONG), {"1": None, "[]": None, "null": None, '"{}"': None}),
    (List(LONG), {"[1,2]": [1, 2], "[1,null]": [1, None], "[]": [], '[1,"x"]': None, "1": None}),
    (List(DATE), {'["2024-05-31"]': [19874], '["2024-05-31","x"]': None}),
    (List(Struct.of(x=LONG)), {'[{"x":1},{"x":"b"}]': [{"x": 1}, {"x": None}], "[{},3]": None}),
    (Map(STRING, LONG), {'{"a":1,"b":null}': [("a", 1), ("b", None)], '{"a":"x"}': None}),
    (Map(STRING, LONG), {'{"a":1,"a":2}': [("a", 2)], "{}": [], "[]": None}),
]


@pytest.mark.parametrize(
    ("type_", "text", "wanted"),
    [(type_, text, wanted) for type_, cases in MEMBERS for text, wanted in cases.items()],
    ids=lambda value: str(value)[:30],
)
def test_a_member_fits_its_type_or_is_null(type_: DataType, text: str, wanted: Any) -> None:
    outer = Struct.of(m=type_, after=LONG)
    texts = [f'{{"m":{text},"after":7}}', None, '{"after":7}']
    found = value_of(col("t").parse_json(outer), t=(STRING, texts))
    assert repr(found) == repr([{"m": wanted, "after": 7}, None, {"m": None, "after": 7}])


SIMPLE = Struct.of(a=LONG, b=STRING)
NOTHING = {"a": None, "b": None}


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "x", "{", '{"a":1', '{"a":1,}', "{a:1}", "{'a':1}", '{"a":01}', '{"b":"a\nb"}'),
        *("[1]", '[{"a":1}]', "1", "null", '"x"', '{"a":1} x', '{"a":1}{"a":2}', '{"a":1}\n{}'),
        "[" * 100_000,
    ],
    ids=lambda text: repr(text)[:20],
)
def test_text_that_is_no_object_gives_a_struct_of_nulls(text: str) -> None:
    texts = ['{"a":1,"b":"x"}', text, None]
    found = value_of(col("t").parse_json(SIMPLE), t=(STRING, texts))
    assert found == [{"a": 1, "b": "x"}, NOTHING, None]


@pytest.mark.parametrize(
    "text", [' {"a":1} ', '\t{"a" : 1}\n', '{"a":2,"a":1}', '{"z":[{}],"a":1}', '{"\\u0061":1}']
)
def test_objects_in_other_forms(text: str) -> None:
    found = value_of(col("t").parse_json(SIMPLE), t=(STRING, [text]))
    assert found == [{"a": 1, "b": None}]


def test_names_are_case_sensitive_and_the_last_repeated_one_that_fits_counts() -> None:
    texts = ['{"A":1}', '{"a":1,"a":"x"}', '{"a":"x","a":1}', '{"a":1,"a":2}', '{"a":1,"a":null}']
    found = value_of(col("t").parse_json(SIMPLE), t=(STRING, texts))
    assert [row["a"] for row in found] == [None, 1, 1, 2, None]


@pytest.mark.parametrize(
    ("type_", "texts", "wanted"),
    [
        (
            List(LONG),
            ["[1,null]", "[]", '[1,"x"]', "1", "x", "null", "", None],
            [[1, None], [], *[None] * 6],
        ),
        (Map(STRING, LONG), ['{"a":1}', "[]", "x", None], [[("a", 1)], None, None, None]),
    ],
    ids=str,
)
def test_other_types_than_structs(type_: DataType, texts: list[Any], wanted: list[Any]) -> None:
    assert value_of(col("t").parse_json(type_), t=(STRING, texts)) == wanted


def test_no_texts_at_all() -> None:
    assert value_of(col("t").parse_json(SIMPLE), t=(STRING, [None, None])) == [None, None]


REGULAR = Struct.of(
    i=LONG,
    n=INTEGER,
    d=DOUBLE,
    s=STRING,
    b=BOOLEAN,
    t=TIMESTAMP,
    l=List(LONG),
    o=Struct.of(x=LONG, d=DATE),
    m=Decimal(5, 2),
)
ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(1 << 65), 1 << 65),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(codec="utf-8"), max_size=3),
        st.sampled_from(["2024-05-31", "2024-05-31T12:00:00.5Z", "2024-02-30"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["x", "d", "z"]), inner, max_size=3),
    ),
    max_leaves=5,
)
FITTING = st.fixed_dictionaries(
    {},
    optional={
        "i": st.integers(-(1 << 63), (1 << 63) - 1) | st.none(),
        "n": st.integers(-(1 << 31), (1 << 31) - 1),
        "d": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5),
        "s": st.text(st.characters(codec="utf-8"), max_size=4),
        "b": st.booleans(),
        "m": st.sampled_from([1, 1.5, -0.25, "1.5", 1.005, 12345678]),
        "t": st.sampled_from(["2024-05-31", "2024-05-31T12:00:00+01:00", "x"]),
        "l": st.lists(st.integers(-9, 9) | st.none(), max_size=3),
        "o": st.fixed_dictionaries(
            {}, optional={"x": st.integers(-9, 9), "d": st.just("2024-05-31")}
        ),
        "other": ANYTHING,
    },
)
ODD = st.dictionaries(st.sampled_from(REGULAR.names), ANYTHING, max_size=4)


@given(
    st.lists(st.none() | FITTING.map(json.dumps), max_size=6),
    st.none() | (FITTING | ODD).map(lambda value: json.dumps(value, ensure_ascii=False)),
    st.sampled_from([None, "", "{", " {} "]),
)
@settings(max_examples=100)
def test_both_readers_agree(texts: list[Any], odd: Any, broken: Any) -> None:
    for column in (texts, [*texts, odd], [odd, *texts, broken]):
        if not column:
            continue
        exact = read_exactly(pa.array(column, pa.string()), REGULAR)
        assert exact.type == to_arrow(REGULAR)
        found = value_of(col("t").parse_json(REGULAR), t=(STRING, column))
        assert repr(found) == repr(to_python(exact))
