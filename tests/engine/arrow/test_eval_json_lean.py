"""Lines without members that none before had: read as if nothing had been left out."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.engine.arrow.eval.json_lean import LeanReader
from millpond.engine.arrow.eval.json_typed import reader_of
from millpond.plan.types import BINARY, BOOLEAN, LONG, STRING, Field, List, Map, Struct

VECTOR = Struct.of(kind=STRING, at=LONG)
FILE = Struct.of(path=STRING, vector=VECTOR, tags=Map(STRING, STRING), sizes=List(LONG))
ROW = Struct.of(add=FILE, remove=Struct.of(path=STRING, vector=VECTOR), flag=BOOLEAN)


def lines(*values: Any) -> tuple[bytes, int]:
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return "\n".join(texts).encode(), len(texts)


def read(reader: LeanReader, *values: Any) -> list[Any] | None:
    """What is read of a piece, which is what the reader of whole lines reads."""
    whole = reader_of(ROW)
    assert whole is not None
    found, wanted = reader.read(*lines(*values)), whole.read(*lines(*values))
    if found is None or wanted is None:
        assert found is wanted
        return None
    found.validate(full=True)
    assert found.type == wanted.type
    assert found.to_pylist() == wanted.to_pylist()
    rows: list[Any] = found.to_pylist()
    return rows


PLAIN = {"add": {"path": "a"}}
LATER: list[Any] = [
    {"add": {"path": "b", "vector": {"kind": "u"}}},
    {"add": {"path": "b", "vector": {"at": 1}}},
    {"add": {"tags": {"k": None}}},
    {"add": {"sizes": []}},
    {"remove": {"path": "b"}},
    {"remove": {"vector": {"kind": "u", "at": 1}}},
    {"remove": {}},
    {"flag": False},
    {"other": 1},
    {},
]


@pytest.mark.parametrize("later", LATER, ids=str)
def test_a_member_that_comes_later_is_there(later: Any) -> None:
    reader = LeanReader(ROW)
    for piece in ([PLAIN], [PLAIN, later], [PLAIN], [later, PLAIN], [later]):
        assert read(reader, *piece) is not None


def test_what_is_absent_may_be_null() -> None:
    reader = LeanReader(ROW)
    read(reader, PLAIN)
    nothing = {"path": "b", "vector": None, "tags": None, "sizes": None}
    assert read(reader, {"add": nothing, "remove": None, "flag": None}) == [
        {"add": nothing, "remove": None, "flag": None}
    ]
    assert read(reader, {"add": None}) == [{"add": None, "remove": None, "flag": None}]


@pytest.mark.parametrize(
    "odd",
    [
        {"remove": 1},
        {"remove": "x"},
        {"remove": {"vector": {"at": "x"}}},
        {"flag": 0},
        {"add": {"path": 7}},
        '{"add":{"path":"a"}',
        '{"add":{"path":"a"}}{}',
        '{"remove":{"path":"a"},"remove":7}',
        '{"remove":nul}',
        '{"other":{"d":}}',
    ],
    ids=str,
)
def test_what_does_not_fit_is_not_read_either_way(odd: Any) -> None:
    reader = LeanReader(ROW)
    assert read(reader, PLAIN) is not None
    assert read(reader, PLAIN, odd) is None
    assert read(reader, PLAIN) is not None


def test_a_member_that_stands_twice_counts_as_it_did() -> None:
    reader = LeanReader(ROW)
    read(reader, PLAIN)
    twice = '{"remove":{"path":"a"},"remove":null,"add":{"path":"a","path":"b"}}'
    found = read(reader, twice)
    assert found is not None
    assert (found[0]["remove"], found[0]["add"]["path"]) == (None, "b")


def test_nothing_is_read_twice_for_long() -> None:
    reader = LeanReader(ROW)
    pieces: list[list[Any]] = [[{}], LATER, [{}], LATER]
    for piece in pieces:
        assert reader.read(*lines(*piece)) is not None
    # All members have been seen by now, so that the lean way is the whole way.
    assert reader._absent == frozenset()


def test_what_was_seen_once_is_built_from_then_on() -> None:
    reader = LeanReader(ROW)
    for piece in ({"flag": True}, PLAIN, {"remove": {"path": "b"}}):
        read(reader, piece)
    assert reader._absent is not None
    assert ("add", "vector") in reader._absent
    assert not {("add",), ("remove",), ("flag",)} & reader._absent


def test_that_a_line_has_nothing_says_nothing_of_what_others_lack() -> None:
    reader = LeanReader(ROW)
    read(reader, {})
    read(reader, PLAIN)
    assert reader._absent is not None
    assert {("add", "vector"), ("add", "vector", "kind"), ("remove",)} <= reader._absent
    assert not {("add",), ("add", "path")} & reader._absent


def test_types_that_need_more_care() -> None:
    reader = LeanReader(Struct((Field("b", BINARY),)))
    assert reader.read(b"{}", 1) is None
    assert LeanReader(Struct()).read(b"{}\n{}", 2) == pa.array([{}, {}], pa.struct([]))


PATHS = st.text(st.characters(codec="utf-8"), max_size=4)
VECTORS = st.none() | st.fixed_dictionaries({}, optional={"kind": PATHS, "at": st.integers(0, 9)})
ACTIONS = st.none() | st.fixed_dictionaries({}, optional={"path": PATHS, "vector": VECTORS})
ROWS = st.fixed_dictionaries(
    {}, optional={"add": ACTIONS, "remove": ACTIONS, "flag": st.sampled_from([True, None, 7])}
)


@given(st.lists(st.lists(ROWS, min_size=1, max_size=3), max_size=6))
@settings(deadline=None)
def test_any_lines_in_any_pieces(pieces: list[list[Any]]) -> None:
    reader = LeanReader(ROW)
    for piece in pieces:
        read(reader, *piece)
