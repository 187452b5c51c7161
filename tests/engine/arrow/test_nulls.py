"""Columns without nulls say so, whatever pyarrow's reader left open."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond import scan
from millpond.engine.arrow.source.nulls import without_nulls

if TYPE_CHECKING:
    from pathlib import Path

NESTED = pa.struct({"a": pa.int64(), "l": pa.list_(pa.struct({"b": pa.string()}))})
FULL: dict[str, tuple[pa.DataType, list[Any]]] = {
    "long": (pa.int64(), [1, 2]),
    "bool": (pa.bool_(), [True, False]),
    "text": (pa.string(), ["a", ""]),
    "bytes": (pa.large_binary(), [b"a", b""]),
    "decimal": (pa.decimal128(20, 2), [Decimal("1.50"), Decimal(0)]),
    "time": (pa.timestamp("us", tz="UTC"), [0, 1]),
    "struct": (NESTED, [{"a": 1, "l": [{"b": "x"}, {"b": "y"}]}, {"a": 2, "l": []}]),
    "list": (pa.list_(pa.int32()), [[1], [2, 3]]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("k", 1)], []]),
}


def read(array: pa.Array, path: Path) -> pa.Array:
    """An array as pyarrow's reader gives it."""
    pq.write_table(pa.table({"c": array}), path)
    return pq.ParquetFile(path).read_row_group(0).column("c").chunk(0)


def notes(array: pa.Array) -> list[bool]:
    """Whether there is a note of nulls, for an array and the members of its structs and lists."""
    found = [array.buffers()[0] is not None]
    if pa.types.is_struct(array.type):
        for number in range(array.type.num_fields):
            found += notes(array.field(number))
    elif pa.types.is_list(array.type):
        found += notes(array.values)
    return found


@pytest.mark.parametrize("name", FULL)
def test_values_stay_as_they_are(name: str, tmp_path: Path) -> None:
    type_, values = FULL[name]
    for some in (values, [*values, None], [None], []):
        array = read(pa.array(some, type_), tmp_path / "f.parquet")
        told = without_nulls(array)
        told.validate(full=True)
        assert told.equals(array)
        assert told.null_count == some.count(None)


@pytest.mark.parametrize("name", [name for name in FULL if name != "map"])
def test_no_note_is_left_where_nothing_is_null(name: str, tmp_path: Path) -> None:
    type_, values = FULL[name]
    array = read(pa.array(values, type_), tmp_path / "f.parquet")
    assert not any(notes(without_nulls(array)))


def test_members_are_told_apart(tmp_path: Path) -> None:
    values = [{"a": None, "l": [{"b": "x"}]}, {"a": 1, "l": [{"b": "y"}]}]
    array = without_nulls(read(pa.array(values, NESTED), tmp_path / "f.parquet"))
    struct, number, list_, member, text = notes(array)
    assert number
    assert not any((struct, list_, member, text))
    assert array.to_pylist() == values


def test_a_part_of_an_array_is_left_alone(tmp_path: Path) -> None:
    array = read(pa.array([1, 2, 3]), tmp_path / "f.parquet").slice(1)
    assert without_nulls(array) is array


def test_rows_are_read_so(tmp_path: Path) -> None:
    type_, values = FULL["struct"]
    rows = pa.table({"n": [1, 2], "s": pa.array(values, type_), "some": [None, 1]})
    pq.write_table(rows, tmp_path / "f.parquet")
    [batch] = scan(tmp_path / "f.parquet").execute(engine="arrow")
    assert not any(notes(batch.column("n")) + notes(batch.column("s")))
    assert notes(batch.column("some")) == [True]
    assert pa.Table.from_batches([batch]).to_pylist() == rows.to_pylist()
