"""Parquet files with damage: strict scans refuse text that is no UTF-8; footers may be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.base.errors import SourceError
from millpond.plan.sources import File, Scan
from millpond.plan.types import LONG, STRING, Field, List, Map, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = Struct.of(
    text=STRING,
    inside=Struct.of(text=STRING, n=LONG),
    some=List(STRING),
    pairs=Map(STRING, STRING),
    many=List(Struct.of(n=LONG, text=STRING)),
)
GOOD: dict[str, Any] = {
    "text": "é",
    "inside": {"text": "in", "n": 1},
    "some": ["one", None],
    "pairs": {"key": "value", "none": None},
    "many": [{"n": 2, "text": "deep"}, None],
}
EMPTY: dict[str, Any] = dict.fromkeys(GOOD)
TEXTS = [("text", "é"), ("inside", "in"), ("some", "one"), ("pairs", "key"), ("pairs", "value")]
TEXTS += [("many", "deep")]


def write(path: Path) -> Path:
    file = path / "x.parquet"
    schema = mp.values([], COLUMNS).to_arrow(engine="arrow").schema
    rows = pa.Table.from_pylist([EMPTY, GOOD], schema)
    pq.write_table(rows, file, compression="none", use_dictionary=False, write_statistics=False)
    return file


def scan(file: Path, column: str, *, strict: bool = True, engine: str = "arrow") -> pa.Table:
    columns = Struct((Field(column, COLUMNS.field(column).type),))
    return Scan("parquet", (File(str(file)),), columns, strict=strict).to_arrow(engine=engine)


def damage(file: Path, text: str) -> None:
    """Make one text of the file no UTF-8, in its pages."""
    content = file.read_bytes()
    stored = len(text.encode()).to_bytes(4, "little") + text.encode()
    assert content.count(stored) == 1
    file.write_bytes(content.replace(stored, stored[:-1] + b"\xff"))


@pytest.mark.parametrize(("column", "text"), TEXTS)
def test_text_that_is_no_utf8_is_named(tmp_path: Path, column: str, text: str) -> None:
    file = write(tmp_path)
    assert scan(file, column).to_pylist(maps_as_pydicts="strict")[1][column] == GOOD[column]
    damage(file, text)
    with pytest.raises(SourceError, match=rf"column {column} of .*x\.parquet .*no UTF-8"):
        scan(file, column)
    assert scan(file, column, strict=False).num_rows == 2


@pytest.mark.spark
def test_spark_names_text_that_is_no_utf8(tmp_path: Path, spark: SparkSession) -> None:
    for column, text in TEXTS:
        file = write(tmp_path)
        assert scan(file, column, engine="spark") == scan(file, column)
        damage(file, text)
        with pytest.raises(SourceError, match=rf"column {column} of .*x\.parquet .*no UTF-8"):
            scan(file, column, engine="spark")


def test_a_footer_that_contradicts_itself_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"n": [1, 2]}), file)
    rows = mp.scan(str(file)).filter(mp.col("n") > 1)
    # The last such bytes are the column chunk's type, INT64, and the beginning of its encodings.
    before, _, after = file.read_bytes().rpartition(b"\x15\x04\x19")
    file.write_bytes(before + b"\x15\x02\x19" + after)

    with pytest.raises(SourceError, match=r"x\.parquet .*column n INT64 and INT32"):
        rows.to_arrow(engine="arrow")
    with pytest.raises(SourceError, match=r"x\.parquet .*column n INT64 and INT32"):
        mp.scan(str(file))


def test_a_footer_that_calls_texts_numbers_does_not_end_the_process(tmp_path: Path) -> None:
    """Texts of few rows are picked out of pages, if their statistics tell that none is null."""
    file, count = tmp_path / "x.parquet", 20_000
    texts = [f"text number {row % 9_000}" for row in range(count)]
    pq.write_table(pa.table({"n": range(count), "t": texts}), file)
    rows = mp.scan(str(file)).filter(mp.col("n") == 5)
    before, _, after = file.read_bytes().rpartition(b"\x15\x0c\x19")  # the chunk's BYTE_ARRAY
    file.write_bytes(before + b"\x15\x02\x19" + after)

    # Pages are read by the schema, which is right.
    assert rows.to_pylist(engine="arrow") == [{"n": 5, "t": "text number 5"}]


def test_a_name_that_is_no_utf8_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"name": [1, 2]}), file, store_schema=False)
    rows = mp.scan(str(file))
    file.write_bytes(file.read_bytes().replace(b"name", b"nam\xff"))

    with pytest.raises(SourceError, match=r"x\.parquet can't be read"):
        rows.to_arrow(engine="arrow")
    with pytest.raises(SourceError, match=r"x\.parquet can't be read"):
        mp.scan(str(file))
