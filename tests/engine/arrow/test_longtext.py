"""More text than one Arrow array takes: rows come in smaller batches. The limit is lowered here."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.base.errors import EngineError, SourceError
from millpond.engine.arrow import sort
from millpond.engine.arrow.source import conform, dense, rowgroup
from millpond.engine.arrow.source.longtext import LongTextError
from millpond.engine.arrow.source.pages import chunk, gather
from millpond.plan.expr import col, path
from millpond.plan.make import values
from millpond.plan.types import LONG, STRING, List, Struct

pytestmark = pytest.mark.usefixtures("each_reader")

ROWS = 12_000  # from 10,000 on, texts that repeat are read as dictionaries
LIMIT = 80_000


@pytest.fixture(autouse=True)
def _low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "MOST_BYTES", LIMIT)
    monkeypatch.setattr(conform, "MOST_BYTES", LIMIT)
    monkeypatch.setattr(chunk, "MOST_BYTES", LIMIT)
    monkeypatch.setattr(gather, "MOST_BYTES", LIMIT)


TABLE = pa.table(
    {
        "n": range(ROWS),
        "few": [f"a text that repeats {i % 7}" if i % 11 else None for i in range(ROWS)],
        "full": [f"a text that repeats {i % 70}" for i in range(ROWS)],
        "many": [f"a text of its own {i}" if i % 13 else None for i in range(ROWS)],
        "deep": [{"text": f"text {i}", "n": i} if i % 17 else None for i in range(ROWS)],
        "list": [[f"{i}"] * (i % 3) for i in range(ROWS)],
    }
)


RECORDS = TABLE.to_pylist()


def rows_of(found: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(found).cast(TABLE.schema)


@pytest.fixture(params=[ROWS, 4_000])
def file(tmp_path: Any, request: Any) -> str:
    target = str(tmp_path / "a.parquet")
    pq.write_table(TABLE, target, row_group_size=request.param, store_schema=False)
    return target


def batches(plan: Any) -> list[pa.RecordBatch]:
    found = list(plan.execute(engine="arrow"))
    for batch in found:
        for column in batch.columns:
            is_text = pa.types.is_string(column.type)
            assert not is_text or (pc.sum(pc.binary_length(column)).as_py() or 0) <= LIMIT
    return found


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        (col("n") % 2 == 0, lambda row: row["n"] % 2 == 0),
        (col("many").ends_with("7"), lambda row: row["many"] and row["many"].endswith("7")),
        (
            path("deep.text") >= "text 5",
            lambda row: row["deep"] and row["deep"]["text"] >= "text 5",
        ),
        (col("n") >= 0, lambda row: True),
    ],
    ids=["some", "by text", "by member", "all"],
)
@pytest.mark.parametrize("part", [1_000, 100_000])
def test_rows_are_the_same_in_smaller_batches(
    file: str, condition: Any, kept: Any, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rowgroup, "PART_ROWS", part)
    monkeypatch.setattr(rowgroup, "WHOLE_BYTES", 0)
    scan = mp.scan(file)
    assert rows_of(batches(scan)) == TABLE
    wanted = [row["n"] for row in RECORDS if kept(row)]
    assert rows_of(batches(scan.filter(condition))) == TABLE.take(wanted)


def test_rows_that_are_deleted(file: str) -> None:
    gone = list(range(0, ROWS, 3))
    named = values([{"path": file, "gone": gone}], Struct.of(path=STRING, gone=List(LONG)))
    plan = named.dynamic_scan(mp.scan(file).schema, deleted="gone")
    assert rows_of(batches(plan)) == TABLE.take([n for n in range(ROWS) if n % 3])


def test_one_text_that_is_too_long_is_an_error(tmp_path: Any) -> None:
    target = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"s": ["a", "b" * LIMIT, "c"]}), target, store_schema=False)
    with pytest.raises(LongTextError, match=rf"column s of {target} has more than 2 GB") as caught:
        list(mp.scan(target).execute(engine="arrow"))
    assert isinstance(caught.value, SourceError)
    assert "smaller row groups" in str(caught.value)


def test_what_needs_all_rows_at_once_says_so(file: str) -> None:
    with pytest.raises(LongTextError, match="more than 2 GB in the rows that are needed at once"):
        list(mp.scan(file).top_k(5_000, "many").execute(engine="arrow"))


def test_parts_have_not_many_bytes(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowgroup, "PART_BYTES", 20_000)
    monkeypatch.setattr(rowgroup, "WHOLE_BYTES", 0)
    found = list(mp.scan(file).select("n", "many").execute(engine="arrow"))
    assert max(batch.num_rows for batch in found) < 1_500
    assert [n for batch in found for n in batch["n"].to_pylist()] == list(range(ROWS))


def test_sorted_rows_come_in_windows_of_bytes(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort, "_RUN_BYTES", 30_000)
    found = batches(mp.scan(file).select("n", "many").sort(col("n").desc()))
    assert max(batch.num_rows for batch in found) < 2_000
    assert [n for batch in found for n in batch["n"].to_pylist()] == list(reversed(range(ROWS)))


def test_what_arrow_itself_can_not_do_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflow(*_: Any) -> None:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    monkeypatch.setattr(sort, "concat", overflow)
    plan = values([{"x": 2}, {"x": 1}], Struct.of(x=LONG)).sort("x")
    with pytest.raises(EngineError, match="can't go on: offset overflow") as caught:
        list(plan.execute(engine="arrow"))
    assert "more than 2 GB of text" in str(caught.value)


@pytest.mark.slow
def test_real_row_groups_of_more_than_2_gb(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    rows, text = 140_000, "x" * 16_400
    for name, different in (("few", 50), ("many", rows)):
        target = str(tmp_path / f"{name}.parquet")
        with pq.ParquetWriter(
            target,
            pa.schema([("s", pa.string())]),
            use_dictionary=name == "few",
            store_schema=False,
        ) as writer:
            texts = [pa.array([f"{text}{i % different}"]) for i in range(min(different, 1_000))]
            chunks = [texts[i % len(texts)] for i in range(rows)]
            writer.write_table(pa.table({"s": pa.chunked_array(chunks)}), row_group_size=rows)
        scan = mp.scan(target)
        assert sum(b.num_rows for b in scan.execute(engine="arrow")) == rows
        some = scan.filter(col("s").ends_with("x7")).execute(engine="arrow")
        assert sum(b.num_rows for b in some) == rows // len(texts)
