from __future__ import annotations

import decimal
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import millpond as mp
from millpond.base.errors import TypeMismatchError
from millpond.fs.command import NodeCommand
from millpond.fs.factory import FACTORIES
from millpond.steward.keeping.root import content_root
from millpond.steward.keeping.rowhash import RowsHash, rows_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from millpond.fs.factory import Run
    from millpond.steward.pond import Pond
    from millpond.steward.write import WriteScope

START = datetime(2024, 1, 1, tzinfo=UTC)

# Rows

TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "long": (pa.int64(), st.integers(-3, 3)),
    "int": (pa.int32(), st.integers(-3, 3)),
    "double": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, float("inf"), float("nan")])),
    "float": (pa.float32(), st.sampled_from([0.0, 1.5])),
    "text": (pa.string(), st.sampled_from(["", "a", "b", "ab"])),
    "bytes": (pa.binary(), st.sampled_from([b"", b"a", b"\0"])),
    "truth": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates(date(2024, 1, 1), date(2024, 1, 3))),
    "time": (
        pa.timestamp("us", "UTC"),
        st.integers(0, 3).map(lambda n: START + timedelta(seconds=n)),
    ),
    "decimal": (
        pa.decimal128(20, 2),
        st.sampled_from([decimal.Decimal("1.50"), decimal.Decimal("-9999999999999999.99")]),
    ),
    "list": (pa.list_(pa.int64()), st.lists(st.integers(0, 1) | st.none(), max_size=3)),
    "lists": (
        pa.list_(pa.list_(pa.string())),
        st.lists(st.lists(st.sampled_from(["", "a"]), max_size=2) | st.none(), max_size=2),
    ),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.integers(0, 1) | st.none(), "b": st.sampled_from("xy")}),
    ),
    "map": (
        pa.map_(pa.string(), pa.int64()),
        st.dictionaries(st.sampled_from("xyz"), st.integers(0, 1) | st.none(), max_size=2).map(
            lambda found: sorted(found.items())
        ),
    ),
}
SCHEMA = pa.schema([(name, type_) for name, (type_, _) in TYPES.items()])
ROWS = st.lists(
    st.fixed_dictionaries({name: values | st.none() for name, (_, values) in TYPES.items()}),
    max_size=6,
)


def digest(rows: list[dict[str, Any]], size: int = 100) -> bytes:
    return rows_digest(pa.Table.from_pylist(rows, SCHEMA).to_batches(max_chunksize=size))


def frozen(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return ("list", *map(frozen, value))
    if isinstance(value, dict):
        return ("dict", *((k, frozen(v)) for k, v in value.items()))
    if isinstance(value, float):
        return "nan" if np.isnan(value) else (value, bool(np.signbit(value)))
    return value


@given(ROWS, st.randoms(use_true_random=False), st.integers(1, 4))
def test_order_and_batches_do_not_matter(
    rows: list[dict[str, Any]], random: Any, size: int
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert digest(rows) == digest(shuffled, size)


@given(ROWS, ROWS)
def test_hashes_are_equal_if_rows_are(
    one: list[dict[str, Any]], other: list[dict[str, Any]]
) -> None:
    same = Counter(map(frozen, one)) == Counter(map(frozen, other))
    assert (digest(one) == digest(other)) == same


@pytest.mark.parametrize("name", TYPES)
@given(st.data())
def test_a_change_of_one_value_is_seen(name: str, data: st.DataObject) -> None:
    type_, strategy = TYPES[name]
    values = data.draw(st.lists(strategy | st.none(), min_size=1, max_size=5))
    place = data.draw(st.integers(0, len(values) - 1))
    other = [*values]
    other[place] = data.draw(strategy | st.none())
    schema = pa.schema([(name, type_)])

    def of(items: list[Any]) -> bytes:
        table = pa.Table.from_pylist([{name: item} for item in items], schema)
        # What is around a slice does not count.
        return rows_digest(pa.concat_tables([table, table]).slice(1, len(items)).to_batches()) + (
            rows_digest(table.to_batches())
        )

    same = Counter(map(frozen, values)) == Counter(map(frozen, other))
    assert (of(values)[32:] == of(other)[32:]) == same


def test_values_that_change_their_rows_or_columns_are_seen() -> None:
    def of(**columns: list[Any]) -> bytes:
        return rows_digest([pa.record_batch(columns)])

    assert of(a=[1, 2], b=[3, 4]) != of(a=[1, 2], b=[4, 3])
    assert of(a=[1, 2], b=[3, 4]) != of(a=[3, 4], b=[1, 2])
    assert of(a=[1, 1]) != of(a=[1])
    assert of(a=[None], b=[1]) != of(a=[1], b=[None])
    assert RowsHash().digest() != of(a=[0])


def test_a_type_that_no_table_has_is_refused() -> None:
    with pytest.raises(TypeMismatchError, match="duration"):
        rows_digest([pa.record_batch({"a": pa.array([1], pa.duration("s"))})])


# Ponds


class Idle:
    """A factory that does nothing."""

    commands = (NodeCommand("run"),)

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        return config

    def run(self, run: Run) -> None:
        """Nothing."""


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    FACTORIES.register("idle", Idle)


def measured(*hours: int) -> list[dict[str, Any]]:
    return [{"timestamp": START + timedelta(hours=n), "level": n / 2} for n in hours]


def do(pond: Pond, *steps: Callable[[WriteScope], Any]) -> None:
    """Each step is a transaction."""
    for step in steps:
        with pond.write() as tx:
            step(tx)
            tx.commit()


def filled(place: Path) -> Pond:
    """In one go."""
    pond = mp.create(place)
    with pond.write() as tx:
        tx.make_directory("/a/b", parents=True)
        tx.write_bytes("/a/file", b"content")
        tx.write_bytes("/blob", bytes(100_000))
        tx.write_bytes("/log", b"one\ntwo\n", series=True)
        tx.write_table("/a/t", [{"id": 1, "name": "one"}, {"id": 2, "name": None}])
        tx.append_series("/s", measured(0, 1, 2, 3))
        tx.make_link("/link", "a/file")
        tx.make_factory("/x", "idle", {"a": 1, "b": 2})
        tx.commit()
    return pond


def filled_otherwise(place: Path) -> Pond:
    """The same in many steps, with detours."""
    pond = mp.create(place)
    do(
        pond,
        lambda tx: tx.make_directory("/other"),
        lambda tx: tx.write_bytes("/other/file", b"draft"),
        lambda tx: tx.write_bytes("/other/file", b"content"),
        lambda tx: tx.write_bytes("/log", b"on", series=True),
        lambda tx: tx.write_bytes("/log", b"e\ntwo\n", series=True),
        lambda tx: tx.write_table("/t", [{"id": 2}]),
        lambda tx: tx.write_table("/t", [{"id": 2, "name": None}, {"id": 1, "name": "one"}]),
        lambda tx: tx.append_series("/s", measured(3, 1)),
        lambda tx: tx.append_series("/s", measured(2)),
        lambda tx: tx.append_series("/s", measured(0)),
        lambda tx: tx.make_directory("/other/b"),
        lambda tx: tx.move("/t", "/other/t"),
        lambda tx: tx.move("/other", "/a"),
        lambda tx: tx.make_factory("/x", "idle", {"b": 2, "a": 1}),
        lambda tx: tx.write_bytes("/blob", [b"\0"] * 100_000),
        lambda tx: tx.write_bytes("/gone", b"x"),
        lambda tx: tx.remove("/gone"),
        lambda tx: tx.make_link("/link", "a/file"),
        lambda tx: tx.remove("/a", recursive=True),
        lambda tx: tx.restore("/a"),
    )
    return pond


def test_ponds_with_the_same_content_have_the_same_root(tmp_path: Path) -> None:
    one, other = filled(tmp_path / "one"), filled_otherwise(tmp_path / "other")
    assert content_root(one.read()) == content_root(other.read())
    for path in ("/a", "/a/file", "/log", "/a/t", "/s", "/link", "/x", "/blob", "/a/b"):
        assert content_root(one.read(), path) == content_root(other.read(), path)
    assert content_root(one.read(), "/a") != content_root(one.read())


def again(tx: WriteScope, path: str) -> WriteScope:
    tx.remove(path)
    return tx


CHANGES: dict[str, Callable[[WriteScope], Any]] = {
    "a directory": lambda tx: tx.make_directory("/empty"),
    "a name": lambda tx: tx.move("/a/b", "/a/c"),
    "a place": lambda tx: tx.move("/a/c", "/c"),
    "bytes": lambda tx: tx.write_bytes("/a/file", b"Content"),
    "a blob": lambda tx: tx.write_bytes("/blob", bytes(100_001)),
    "more bytes": lambda tx: tx.write_bytes("/log", b"\n", series=True),
    "a value": lambda tx: tx.write_table("/a/t", [{"id": 1, "name": "one"}, {"id": 2, "name": ""}]),
    "a row less": lambda tx: tx.write_table("/a/t", [{"id": 1, "name": "one"}]),
    "a row twice": lambda tx: tx.append_series("/s", measured(3)),
    "a column": lambda tx: tx.write_table(
        "/a/t", [{"id": 1, "name": "one"}, {"id": 2, "name": None, "more": None}]
    ),
    "a column's name": lambda tx: tx.write_table(
        "/a/t", [{"id": 1, "title": "one"}, {"id": 2, "title": None}], renamed={"name": "title"}
    ),
    "a bound": lambda tx: tx.change("/s", min_override=0),
    "a target": lambda tx: again(tx, "/link").make_link("/link", "/a/file"),
    "a configuration": lambda tx: tx.make_factory("/x", "idle", {"a": 1, "b": 3}),
    "a kind": lambda tx: again(tx, "/a/file").write_bytes("/a/file", b"content", series=True),
    "an attribute": lambda tx: tx.change("/a/file", extended_attributes='{"unit":"m"}'),
    "removing": lambda tx: tx.remove("/a/file"),
}


def test_every_change_changes_the_root(tmp_path: Path) -> None:
    pond = filled(tmp_path / "pond")
    first = content_root(pond.read())
    seen = {first: "nothing"}
    for number, (what, change) in enumerate(CHANGES.items()):
        do(pond, change)
        root = content_root(pond.read())
        assert root not in seen, f"{what} looks like {seen.get(root)}"
        seen[root] = what
        assert content_root(pond.read(as_of=1)) == first
        assert pond.read().txn_seq == number + 2


def test_what_is_no_content_does_not_change_it(tmp_path: Path) -> None:
    pond = filled(tmp_path / "pond")
    first = content_root(pond.read())
    pond.control.set({"control.record_reads": True, "fs.inline_bytes": 10})
    do(
        pond,
        lambda tx: tx.move("/a", "/z"),
        lambda tx: tx.move("/z", "/a"),
        lambda tx: tx.write_bytes("/a/file", b"content"),
        lambda tx: tx.remove("/s"),
        lambda tx: tx.restore("/s"),
    )
    assert content_root(pond.read()) == first
    with pond.write() as tx:
        tx.write_bytes("/more", b"x")
        assert content_root(tx) != first
        tx.rollback()
