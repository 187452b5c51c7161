"""What is given as rows: nothing of it is lost on the way into a table."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from millpond.base.errors import SchemaError
from millpond.kernel import create_table
from millpond.plan.types import (
    DATE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    List,
    Map,
    Struct,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SCHEMA = Struct.of(
    id=LONG, o=Struct.of(n=LONG), l=List(LONG), m=Map(STRING, LONG), k=Map(LONG, LONG)
)


@pytest.mark.parametrize(
    ("row", "where"),
    [
        ({"id": 1.5}, "id"),
        ({"o": {"n": 0.5}}, "o.n"),
        ({"l": [1, 2.5]}, "l.element"),
        ({"m": {"a": 3.25}}, "m.value"),
        ({"m": [("a", 3.25)]}, "m.value"),
        ({"k": {1.5: 1}}, "k.key"),
        ({"id": np.float32(1.5)}, "id"),
        ({"id": Decimal("1.5")}, "id"),
        ({"id": Decimal("Infinity")}, "id"),
        ({"l": np.array([1.5])}, "l.element"),
    ],
)
def test_fractions_are_not_cut_off(tmp_path: Path, row: dict[str, Any], where: str) -> None:
    table = create_table(tmp_path / "t", SCHEMA)
    with pytest.raises(SchemaError, match=rf"in '{where}' is no long"), table.transaction() as tx:
        tx.append([row])
    assert table.update().version == 0


def test_whole_numbers_may_be_written_as_fractions(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", SCHEMA)
    with table.transaction() as tx:
        tx.append([{"id": 2.0, "o": {"n": 3.0}, "l": [4.0], "m": {"a": 5.0}, "k": {6.0: 7.0}}])
    rows = table.update().scan().to_arrow().to_pylist(maps_as_pydicts="strict")
    assert rows == [{"id": 2, "o": {"n": 3}, "l": [4], "m": {"a": 5}, "k": {6: 7}}]


NINE = dt.datetime(2024, 5, 1, 9)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"day": NINE}, "'day' is no date"),
        ({"clock": NINE.replace(tzinfo=dt.UTC)}, "'clock' is no timestamp_ntz"),
        ({"at": pd.Timestamp(1, unit="ns")}, "'at' is no timestamp"),
        ({"at": pd.NaT}, "does not fit"),
        ({"at": np.datetime64("2024-05-01")}, "does not fit"),
        ({"texts": "abc"}, "'texts' is no list<string>"),
        ({"texts": ["\ud800"]}, "does not fit"),
    ],
)
def test_values_that_would_be_cut_or_can_not_be(
    tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    schema = Struct.of(day=DATE, clock=TIMESTAMP_NTZ, at=TIMESTAMP, texts=List(STRING))
    table = create_table(tmp_path / "t", schema)
    with pytest.raises(SchemaError, match=message), table.transaction() as tx:
        tx.append([row])
    with table.transaction() as tx:
        midnight = NINE.replace(hour=0)
        tx.append([{"day": midnight, "clock": NINE, "at": pd.Timestamp(NINE), "texts": {"abc"}}])
    assert table.update().scan().to_arrow().to_pylist() == [
        {"day": midnight.date(), "clock": NINE, "at": NINE.replace(tzinfo=dt.UTC), "texts": ["abc"]}
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda: iter([{"id": 1}]), "made of a dict\n.*record batches"),
        (lambda: iter([pa.table({"id": [1]})]), "made of a Table"),
        (lambda: pa.chunked_array([[1]]), "made of a ChunkedArray"),
        (lambda: pd.Series([1], name="id"), "made of a Series"),
        (lambda: pd.DataFrame({"id": [1, "a"]}), "values of different kinds"),
        (lambda: pd.DataFrame([[1, 2]], columns=["id", "id"]), "more than one column 'id'"),
        (
            lambda: pa.table(
                {"o": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])}
            ),
            "'o.n' stands twice",
        ),
    ],
)
def test_what_is_no_rows(tmp_path: Path, rows: Callable[[], Any], message: str) -> None:
    table = create_table(tmp_path / "t", SCHEMA)
    with pytest.raises(SchemaError, match=message), table.transaction() as tx:
        tx.append(rows())
    assert table.update().version == 0


def test_an_index_that_is_a_column_is_written(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", {"id": "long", "site": "string"})
    frame = pd.DataFrame({"id": [1, 2], "site": ["a", "b"]})
    with table.transaction() as tx:
        tx.append(frame.set_index("id"))
        with pytest.raises(SchemaError, match="no column 'row'"):
            tx.append(frame.rename_axis(index="row").tail(1))
        with pytest.raises(SchemaError, match="an index without a name"):
            tx.append(frame.tail(1))
    rows = table.update().scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["site"]) for row in rows) == [(1, "a"), (2, "b")]


def test_a_table_of_arrows_own_schema_takes_its_rows(tmp_path: Path) -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([5]))
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None]))
    rows = pa.table({"runs": runs, "json": texts})
    table = create_table(tmp_path / "t", rows.schema)
    with table.transaction() as tx:
        tx.append(rows)
    assert table.update().scan().to_arrow().to_pylist() == [
        {"runs": 5, "json": "{}"},
        {"runs": 5, "json": None},
    ]


def test_a_source_that_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [1]})
        raise RuntimeError("no more")

    table = create_table(tmp_path / "t", SCHEMA)
    with pytest.raises(RuntimeError, match="no more"), table.transaction() as tx:
        tx.append(batches())
    assert not list((tmp_path / "t").glob("*.parquet"))


def test_a_schema_may_be_given_by_names(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", {"id": "long", "site": "string"})
    assert str(table.schema) == "struct<id: long, site: string>"
    with table.transaction() as tx:
        tx.set_metadata(schema={"id": "long", "site": "string", "level": "double"})
    assert table.update().schema.names == ("id", "site", "level")
    assert repr(table.files()) == f"LiveFiles({table.location!r}, version=0)"
    assert "id, site" in repr(table.scan())
    assert repr(table.changes(0)).endswith("0 to 0)")


@pytest.mark.parametrize("nested", [False, True])
def test_numbers_do_not_become_infinite(tmp_path: Path, *, nested: bool) -> None:
    table = create_table(tmp_path / "t", Struct.of(f=List(FLOAT) if nested else FLOAT))
    largest = float(np.finfo(np.float32).max)

    def value(number: float) -> Any:
        return [number] if nested else number

    for number in (1e39, -(2.0**128) * (1 - 2.0**-25)):
        for rows in ([{"f": value(number)}], pa.table({"f": [value(number)]})):
            with pytest.raises(SchemaError, match="'f"), table.transaction() as tx:
                tx.append(rows)
    good = [largest, -largest, float("inf"), largest * (1 + 2.0**-26)]
    with table.transaction() as tx:
        tx.append([{"f": value(number)} for number in good])
        tx.append(pa.table({"f": [value(number) for number in good]}))
    found = [row["f"] for row in table.update().scan().to_arrow().to_pylist()]
    assert found == [value(number) for number in (largest, -largest, float("inf"), largest)] * 2


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (DATE, pd.NaT),
        (DATE, 1.9),
        (TIMESTAMP, 1.9),
        (Struct.of(x=LONG), (1,)),
        (Struct.of(x=LONG), [("x", 1)]),
        (Map(STRING, LONG), (("k", 1.9),)),
        (Map(STRING, LONG), [{"key": "k", "value": 1}]),
        (DATE, np.datetime64("2024-01-01")),
    ],
)
def test_values_that_arrow_would_make_others_of(tmp_path: Path, type_: Any, value: Any) -> None:
    table = create_table(tmp_path / "t", Struct.of(c=type_))
    with pytest.raises(SchemaError), table.transaction() as tx:
        tx.append([{"c": value}])
    assert table.update().version == 0


def test_bytes_are_no_texts(tmp_path: Path) -> None:
    offsets, content = pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")
    bad = pa.StringArray.from_buffers(1, offsets, content)
    for column, type_ in ((bad, STRING), (pa.StructArray.from_arrays([bad], ["s"]), None)):
        schema = Struct.of(c=type_ or Struct.of(s=STRING))
        table = create_table(tmp_path / ("flat" if type_ else "deep"), schema)
        with pytest.raises(SchemaError, match="'c' holds what is no text"):
            table.transaction().append(pa.table({"c": column}))


def test_dictionaries_of_views_are_written(tmp_path: Path) -> None:
    words = pa.array(["a", "b"], pa.string_view())
    numbers = pa.array([1, None, 0], pa.int32())
    table = create_table(tmp_path / "t", Struct.of(c=STRING))
    with table.transaction() as tx:
        tx.append(pa.table({"c": pa.DictionaryArray.from_arrays(numbers, words)}))
    assert table.update().scan().to_arrow()["c"].to_pylist() == ["b", None, "a"]
