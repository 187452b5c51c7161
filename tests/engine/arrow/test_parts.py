"""Large row groups that are given as a whole come in parts."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.errors import SourceError
from millpond.base.settings import ArrowSettings
from millpond.engine.arrow.context import Context
from millpond.engine.arrow.source import rowgroup
from millpond.engine.arrow.source.files import Files
from millpond.engine.arrow.source.parquet import ParquetSource
from millpond.plan import types as t
from millpond.plan.arrow import from_arrow_schema
from millpond.plan.counters import Counters
from millpond.plan.expr import col

pytestmark = pytest.mark.usefixtures("each_reader")

ROWS = 20_000
PART = 4_000
TABLE = pa.table(
    {
        "n": range(ROWS),
        "kind": [f"k{i % 7}" if i % 11 else None for i in range(ROWS)],
        "deep": [{"kind": f"d{i % 5}", "text": f"text {i}"} for i in range(ROWS)],
    }
)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowgroup, "PART_ROWS", PART)
    monkeypatch.setattr(rowgroup, "WHOLE_BYTES", 0)


def source_of(path: str, **constants: Any) -> ParquetSource:
    context = Context(ArrowSettings(), Counters(), Files())
    return ParquetSource(path, constants, context)


def test_parts_are_the_rows_in_order(tmp_path: Any) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(TABLE, path)
    columns = from_arrow_schema(TABLE.schema)
    wanted = t.Struct((*columns, t.Field("p", t.INTEGER)))
    source = source_of(path, p=3)
    parts = list(source.group(0).parts(wanted, None))
    assert [part.num_rows for part in parts] == [PART] * 5
    found = pa.Table.from_batches(parts)
    assert found.select(TABLE.column_names).to_pylist() == TABLE.to_pylist()
    assert found["p"].to_pylist() == [3] * ROWS
    counters = source.context.counters
    assert (counters.batches_decoded, counters.rows_decoded) == (1, ROWS)
    assert (counters.columns_decoded, counters.columns_skipped) == (4, 0)


@pytest.mark.parametrize(("column", "row"), [("n", 8), ("kind", 32)])
def test_what_is_small_when_decoded_comes_at_once(
    column: str, row: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.parquet")
    whole = pa.table({"n": pa.array([1] * ROWS), "kind": ["k"] * ROWS})
    pq.write_table(whole, path)
    wanted = from_arrow_schema(whole.select([column]).schema)
    for spare, count in ((0, 1), (-1, ROWS // PART)):
        monkeypatch.setattr(rowgroup, "WHOLE_BYTES", row * ROWS + spare)
        parts = list(source_of(path).group(0).parts(wanted, None))
        assert len(parts) == count
        assert pa.Table.from_batches(parts).to_pylist() == whole.select([column]).to_pylist()


def test_rows_that_are_left_out_are_left_out_of_their_part(tmp_path: Any) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(TABLE, path)
    # None of the second part, and all but the first row of the others.
    rows = np.setdiff1d(np.arange(ROWS), [*range(PART, 2 * PART), *range(0, ROWS, PART)])
    parts = list(source_of(path).group(0).parts(from_arrow_schema(TABLE.schema), rows))
    assert [part.num_rows for part in parts] == [PART - 1] * 4
    assert pa.Table.from_batches(parts).to_pylist() == TABLE.take(pa.array(rows)).to_pylist()


@pytest.mark.parametrize("step", [2, 3, 50, 4_001])
@pytest.mark.parametrize("rows", [ROWS, PART])
def test_rows_that_are_gone(tmp_path: Any, step: int, rows: int) -> None:
    path, table = str(tmp_path / "a.parquet"), TABLE.slice(0, rows)
    pq.write_table(table, path)
    # All of the second part, too.
    gone = np.union1d(np.arange(0, rows, step), np.arange(PART, min(rows, 2 * PART)))
    columns = from_arrow_schema(TABLE.schema)
    parts = list(source_of(path).group(0).parts(columns, None, gone=gone))
    assert all(part.num_rows for part in parts)
    left = np.setdiff1d(np.arange(rows), gone)
    assert pa.Table.from_batches(parts).to_pylist() == table.take(pa.array(left)).to_pylist()


def test_who_stops_early_has_decoded_one_part(run: Any, parquet: Any) -> None:
    rows, counters = run(parquet(TABLE, rows=ROWS).select("n", "kind").head(3))
    assert [row["n"] for row in rows] == [0, 1, 2]
    assert counters.rows_decoded == PART


def test_small_row_groups_and_filters_come_as_a_whole(run: Any, parquet: Any) -> None:
    _, counters = run(parquet(TABLE, rows=PART).head(3))
    assert counters.rows_decoded == PART
    rows, counters = run(parquet(TABLE, rows=ROWS).filter(col("n") % 4_000 == 1))
    assert [row["n"] for row in rows] == [1, 4_001, 8_001, 12_001, 16_001]
    assert (counters.batches_decoded, counters.rows_decoded) == (1, ROWS)


def test_a_nested_dictionary_that_ends_in_the_middle(tmp_path: Any) -> None:
    """Few bytes a value, so that a dictionary is tried, and one that becomes too large."""
    texts = ["same"] * (ROWS * 3 // 4) + [f"{i}" for i in range(ROWS // 4)]
    table = pa.table({"n": range(ROWS), "deep": [{"text": text} for text in texts]})
    path = str(tmp_path / "a.parquet")
    pq.write_table(table, path, dictionary_pagesize_limit=4_000, data_page_size=2_000)
    source = source_of(path)
    leaf = source.layout.leaf(("deep", "text"))
    assert leaf is not None
    assert source.stored.repeat(leaf)  # a dictionary is tried
    parts = list(source.group(0).parts(from_arrow_schema(table.schema), None))
    assert [part.num_rows for part in parts] == [PART] * 5
    assert pa.Table.from_batches(parts).to_pylist() == table.to_pylist()


def test_a_file_that_is_damaged_in_the_middle_is_named(tmp_path: Any) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE.select(["n"]), path, compression="zstd", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    stored = bytearray(path.read_bytes())
    middle = chunk.data_page_offset + chunk.total_compressed_size - 64
    stored[middle : middle + 32] = b"\xff" * 32
    path.write_bytes(stored)
    with pytest.raises(SourceError, match=r"a\.parquet can't be read"):
        list(source_of(str(path)).group(0).parts(t.Struct.of(n=t.LONG), None))


def test_a_row_group_that_ends_too_soon_is_damaged(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(TABLE, path)
    source = source_of(path)
    parts = source.read_parts

    def two_of_them(group: int, leaves: list[int], size: int, *, numbered: bool) -> Any:
        return islice(parts(group, leaves, size, numbered=numbered), 2)

    monkeypatch.setattr(source, "read_parts", two_of_them)
    with pytest.raises(SourceError, match=r"fewer rows than its footer says"):
        list(source.group(0).parts(t.Struct.of(n=t.LONG), None))
