"""The fast reader of JSON: what it reads is what the exact reader reads, whatever type and text."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.engine.arrow.eval import json as reading
from millpond.engine.arrow.eval.json import read_pieces
from millpond.engine.arrow.eval.json_exact import read_exactly
from millpond.engine.arrow.eval.json_typed import read_typed
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    Field,
    List,
    Map,
    Struct,
    types_in,
)

NAMES = st.sampled_from(["a", "b", "é", "long name", "A", ""])
WORDS = st.text(st.characters(codec="utf-8"), max_size=4)
WORD_TEXTS = st.builds(
    lambda word, plain: json.dumps(word, ensure_ascii=plain), WORDS, st.booleans()
)
NUMBER_TEXTS = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
    st.sampled_from(["0", "-0", "-0.0", "0e0", "1E2", "-1e-7", "16777217", "1e-46", "3.5e38"]),
)
FITTING: dict[DataType, st.SearchStrategy[str]] = {
    BOOLEAN: st.sampled_from(["true", "false"]),
    BYTE: st.integers(-128, 127).map(str),
    SHORT: st.integers(-(1 << 15), (1 << 15) - 1).map(str),
    INTEGER: st.integers(-(1 << 31), (1 << 31) - 1).map(str),
    LONG: st.integers(-(1 << 63), (1 << 63) - 1).map(str),
    DOUBLE: NUMBER_TEXTS,
    FLOAT: NUMBER_TEXTS,
    STRING: WORD_TEXTS,
    DATE: st.sampled_from(['"2024-05-31"', '"0001-01-01"', '"9999-12-31"']),
    TIMESTAMP: st.sampled_from(['"2024-05-31T12:00:00.123456Z"', '"2024-05-31 12:00:00+01:00"']),
    TIMESTAMP_NTZ: st.sampled_from(['"2024-05-31T12:00:00"', '"1969-12-31 23:59:59.5"']),
    Decimal(9, 3): st.sampled_from(["1", "-0", "1.5", "123456.789", "0.010"]),
    Decimal(38, 0): st.integers(-(10**38) + 1, 10**38 - 1).map(str),
}
ODD = st.one_of(
    st.sampled_from(
        [
            *("null", "1.0", "-0", "1e3", "1e400", "NaN", "-Infinity", "128", "2147483648"),
            *("9223372036854775808", "9" * 40, "1.0005", "true", '"NaN"', '"1.5"', '"2024-02-30"'),
            *('"\\ud800"', '"\\ud83d\\ude00"', '"\\ud800\\u0041"', '"\\u0000"', '"\\/"', '""'),
            *("{}", "[]", "[1,null]", '{"a":1,"a":"x"}', '{"":{}}', "[[{}]]", '{"x":NaN}'),
            *(
                "01",
                "+1",
                ".5",
                "1.",
                "tru",
                "'x'",
                '"\\x"',
                '"a\tb"',
                "[1,]",
                "{a:1}",
                "",
                "{",
                "]",
            ),
        ]
    ),
    NUMBER_TEXTS,
    WORD_TEXTS,
)


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = st.lists(st.builds(Field, NAMES, inner), max_size=4, unique_by=lambda f: f.name)
    return fields.map(lambda found: Struct(tuple(found)))


TYPES = st.recursive(
    st.sampled_from([*FITTING]),
    lambda inner: st.one_of(
        inner.map(List), st.builds(Map, st.just(STRING), inner), structs(inner)
    ),
    max_leaves=8,
)
NESTED = st.one_of(structs(TYPES), TYPES.map(List), st.builds(Map, st.just(STRING), TYPES))
"""What the fast reader takes: a struct, a list or a map of anything."""


@st.composite
def texts_of(draw: st.DrawFn, type_: DataType, odd: st.SearchStrategy[bool]) -> str:
    """JSON that fits a type, with spaces, and now and then something else in it."""
    if draw(odd):
        return draw(ODD)
    gap = draw(st.sampled_from(["", "", " ", "\t"]))
    if isinstance(type_, List):
        items = [draw(texts_of(type_.element, odd)) for _ in range(draw(st.integers(0, 3)))]
        return f"[{gap}" + f",{gap}".join(items) + f"{gap}]"
    if not isinstance(type_, Map | Struct):
        return draw(FITTING[type_])
    wanted = {field.name: field.type for field in type_} if isinstance(type_, Struct) else {}
    members = []
    for name in draw(st.lists(NAMES, max_size=5, unique=not draw(st.booleans()))):
        kind = type_.value if isinstance(type_, Map) else wanted.get(name, STRING)
        members.append(f"{json.dumps(name)}{gap}:{gap}{draw(texts_of(kind, odd))}")
    return f"{{{gap}" + f",{gap}".join(members) + f"{gap}}}"


def same(found: pa.Array, wanted: pa.Array) -> bool:
    """Equal, also in the sign of zeros and in what NaN is."""
    found.validate(full=True)
    return found.type == wanted.type and repr(found.to_pylist()) == repr(wanted.to_pylist())


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_what_is_read_is_what_the_exact_reader_reads(data: st.DataObject) -> None:
    type_ = data.draw(NESTED)
    odd = st.integers(0, 12).map(lambda n: n == 0)
    texts = pa.array(data.draw(st.lists(texts_of(type_, odd), min_size=1, max_size=4)), pa.string())
    exact = read_exactly(texts, type_)
    found = read_typed(texts, type_)
    assert found is None or same(found, exact)
    assert same(pa.concat_arrays([piece.values for piece in read_pieces(texts, type_)]), exact)


def is_read_fast(type_: DataType) -> bool:
    """Not numbers of 32 bits, which may have to be rounded with care, nor decimals in maps."""
    maps = (inner for inner in types_in(type_) if isinstance(inner, Map))
    return FLOAT not in types_in(type_) and not any("decimal" in str(inner) for inner in maps)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_text_that_fits_needs_no_other_reader(data: st.DataObject) -> None:
    type_ = data.draw(NESTED.filter(is_read_fast))
    texts = data.draw(st.lists(texts_of(type_, st.just(False)), min_size=1, max_size=4))
    found = read_typed(pa.array(texts, pa.string()), type_)
    assert found is not None
    assert same(found, read_exactly(pa.array(texts, pa.string()), type_))


ROW = Struct.of(a=LONG, m=Map(STRING, STRING))


@pytest.mark.parametrize(
    "texts",
    [
        ['{"z":', '{"a":1}}', '{"a":2}{"a":3}'],
        ['{"z":\n', '{"a":1}}\n', '{"a":2}{"a":3}\n'],
        ['{"z":{}', ',"a":1}', '{"a":2}{"a":3}'],
        ["{}{}", ""],
        ["{}{}", " "],
        ['{"a":1}\n{"a":2}', ""],
        ['{"a":1\n}'],
        ['{"a":{"x":1}', '{"y":2}}', "{}{}"],
        ["{}\n", "{}\n\n"],
        ["{", "}"],
        ["{}", "[]"],
        ["[]"],
        ["null"],
        ['"{}"'],
        ["\ufeff{}"],
        ["{}\x00"],
    ],
    ids=repr,
)
def test_texts_that_only_together_are_as_many_values(texts: list[str]) -> None:
    column = pa.array(texts)
    values = pa.concat_arrays([piece.values for piece in read_pieces(column, ROW)])
    assert same(values, read_exactly(column, ROW))


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (FLOAT, "1.00000005960464477539062500001"),
        (FLOAT, "-1.00000005960464477539062499999"),
        (FLOAT, "1.40129846432481707e-45"),
        (FLOAT, "3.4028235677973366e38"),
        (DOUBLE, "-0"),
        (List(DATE), '["2024-05-31","2024-02-30"]'),
        (Map(STRING, TIMESTAMP), '{"x":"2024-05-31","y":"z"}'),
        (Map(STRING, LONG), '{"x":"1","x":1}'),
        (Decimal(5, 2), "1.005"),
        (Decimal(5, 2), "12345.6"),
        (Decimal(5, 2), "1e2"),
        (Decimal(38, 0), "3.5e38"),
        (Decimal(38, 2), "3.4E38"),
        (List(Decimal(5, 2)), '[1,null,"1.5"]'),
        (Struct.of(x=LONG), '{"x":1,"x":"y"}'),
        (Struct.of(x=LONG), '{"x":1,"x":null}'),
    ],
    ids=str,
)
def test_values_that_need_care(type_: DataType, text: str) -> None:
    column = pa.array([f'{{"v":{text}}}', "{}"])
    values = [piece.values for piece in read_pieces(column, Struct.of(v=type_))]
    assert same(pa.concat_arrays(values), read_exactly(column, Struct.of(v=type_)))


def test_text_over_several_lines_is_read() -> None:
    texts = pa.array(['{\n  "a": 1\n}', '{\n  "m": {}\r\n}\n'])
    found = read_typed(texts, ROW)
    assert found is not None
    assert found.to_pylist() == [{"a": 1, "m": None}, {"a": None, "m": []}]


@pytest.mark.parametrize("ends", ["", "\n", "\r\n", " ", "\t\n"])
def test_line_ends_and_spaces_around_do_not_matter(ends: str) -> None:
    texts = pa.array([f'{{"a":1}}{ends}', f'{{"m":{{"k":"v"}}}}{ends}'])
    found = read_typed(texts, ROW)
    assert found is not None
    assert found.to_pylist() == [{"a": 1, "m": None}, {"a": None, "m": [("k", "v")]}]


@pytest.mark.parametrize(
    "type_",
    [
        STRING,
        Struct.of(b=BINARY),
        Map(LONG, LONG),
        Struct((Field('"', LONG),)),
        List(Map(DATE, LONG)),
    ],
    ids=str,
)
def test_types_that_it_does_not_read(type_: DataType) -> None:
    assert read_typed(pa.array(["{}"]), type_) is None


def test_only_the_piece_with_an_odd_text_is_read_twice(monkeypatch: Any) -> None:
    monkeypatch.setattr(reading, "PIECE", 10)
    texts = [f'{{"a":{number}}}' for number in range(35)]
    texts[12] = '{"a":"x"}'
    pieces = list(read_pieces(pa.array(texts), ROW))
    assert [piece.is_strict for piece in pieces] == [True, False, True, True]
    values = pa.concat_arrays([piece.values for piece in pieces]).field("a").to_pylist()
    assert values == [*range(12), None, *range(13, 35)]


def test_deep_text_is_no_error() -> None:
    texts = pa.array(['{"z":' + "[" * 100_000 + "]" * 100_000 + "}", '{"a":1}'])
    values = pa.concat_arrays([piece.values for piece in read_pieces(texts, ROW)])
    assert values.to_pylist() == [{"a": None, "m": None}, {"a": 1, "m": None}]
