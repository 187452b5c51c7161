"""Texts that are picked out of pages: the same as pyarrow decodes, and only where it pays."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.base.settings import ArrowSettings
from millpond.engine.arrow.context import Context
from millpond.engine.arrow.source import few
from millpond.engine.arrow.source.files import Files
from millpond.engine.arrow.source.pages import TextLeaf, has_nulls, pick
from millpond.engine.arrow.source.pages.hybrid import MOST_RUNS, is_all, numbers_at
from millpond.engine.arrow.source.parquet import ParquetSource
from millpond.plan import types as t
from millpond.plan.counters import Counters
from millpond.plan.expr import col, element, path

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 20_000
CODECS = ("none", "snappy", "gzip", "brotli", "zstd")


def chunk_of(table: pa.Table, **options: Any) -> tuple[memoryview, TextLeaf | None, Any]:
    """The first column's chunk as it is in a file, and what is known of it."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    stored = sink.getvalue()
    metadata = pq.ParquetFile(io.BytesIO(stored)).metadata
    chunk, column = metadata.row_group(0).column(0), metadata.schema.column(0)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    type_ = table.schema.field(0).type
    leaf = TextLeaf.of(column, ("t",), type_)
    return memoryview(stored)[start : start + chunk.total_compressed_size], leaf, chunk


@st.composite
def texts_and_rows(draw: st.DrawFn) -> tuple[pa.Array, np.ndarray[Any, Any]]:
    count = draw(st.integers(1, 3_000))
    distinct = draw(st.sampled_from((1, 2, 7, 300, 2_000)))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    numbers = rng.integers(0, distinct, count)
    if draw(st.booleans()):
        numbers = np.sort(numbers)  # long runs
    texts = pa.array([f"{'ä' * int(n % 5)}{n}" for n in numbers])
    if draw(st.booleans()):
        texts = texts.cast(pa.binary())
    rows = np.unique(rng.integers(0, count, draw(st.integers(1, 40))))
    return texts, rows


@given(
    texts_and_rows(),
    st.sampled_from(CODECS),
    st.sampled_from(("1.0", "2.0")),
    st.sampled_from((64, 3_000, 1 << 20)),
    st.sampled_from((True, False)),
    st.booleans(),
    st.sampled_from((500, 1 << 20)),
)
def test_picked_texts_are_those_that_pyarrow_decodes(
    given: tuple[pa.Array, np.ndarray[Any, Any]],
    codec: str,
    version: str,
    page_bytes: int,
    use_dictionary: bool,
    nullable: bool,
    dictionary_bytes: int,
) -> None:
    texts, rows = given
    schema = pa.schema([pa.field("t", texts.type, nullable=nullable)])
    chunk, leaf, facts = chunk_of(
        pa.table([texts], schema=schema),
        compression=codec,
        data_page_version=version,
        data_page_size=page_bytes,
        use_dictionary=use_dictionary,
        dictionary_pagesize_limit=dictionary_bytes,
        write_batch_size=64,
    )
    assert leaf is not None
    assert not has_nulls(facts)
    found = pick(chunk, leaf, facts.compression, rows)
    assert found is not None
    found.validate(full=True)
    assert found.equals(texts.take(pa.array(rows)))


def test_chunks_with_nulls_are_left_to_pyarrow() -> None:
    texts = pa.array(["a", None, "b"] * 100)
    chunk, leaf, facts = chunk_of(pa.table({"t": texts}))
    assert leaf is not None
    assert has_nulls(facts)
    assert pick(chunk, leaf, facts.compression, np.array([0])) is None
    # Statistics may be missing, or may not be true: levels decide.
    assert has_nulls(chunk_of(pa.table({"t": ["a"]}), write_statistics=False)[2])


def test_other_encodings_codecs_and_types_are_left_to_pyarrow() -> None:
    table = pa.table({"t": [f"text {i}" for i in range(100)]})
    chunk, leaf, facts = chunk_of(
        table, use_dictionary=False, column_encoding={"t": "DELTA_BYTE_ARRAY"}
    )
    assert leaf is not None
    assert pick(chunk, leaf, facts.compression, np.array([3])) is None
    chunk, leaf, facts = chunk_of(table)
    assert leaf is not None
    assert pick(chunk, leaf, "LZ4", np.array([3])) is None
    long = chunk_of(pa.table({"t": pa.array(["a"], pa.large_string())}))[1]
    assert long is not None
    assert long.type == pa.string()
    assert chunk_of(pa.table({"t": [1, 2]}))[1] is None
    sink = io.BytesIO()
    pq.write_table(pa.table({"t": [["a"]]}), sink)
    column = pq.ParquetFile(sink).metadata.schema.column(0)
    assert TextLeaf.of(column, ("t",), pa.string()) is None


@given(st.integers(0, 1 << 30))
def test_damaged_chunks_are_left_to_pyarrow_or_give_texts(seed: int) -> None:
    """Damage is not always seen, here as there; it never ends in another error."""
    rng = np.random.default_rng(seed)
    texts = pa.array([f"text {i % 50}" for i in range(600)])
    chunk, leaf, facts = chunk_of(pa.table({"t": texts}), compression="none")
    assert leaf is not None
    damaged = np.frombuffer(chunk, np.uint8).copy()
    at = rng.integers(0, len(damaged), 3)
    damaged[at] = rng.integers(0, 256, 3)
    cut = memoryview(damaged.tobytes())[: rng.integers(1, len(damaged) + 1)]
    rows = np.array([1, 300, 599])
    found = pick(cut, leaf, facts.compression, rows)
    assert found is None or len(found) == len(rows)


def test_numbers_in_too_many_runs_are_not_walked() -> None:
    runs = MOST_RUNS + 1
    data = memoryview(bytes([2, 1, 2, 0] * runs))  # one 1, one 0, and so on
    assert numbers_at(data, 1, 2 * runs, np.array([0])) is None
    some = numbers_at(data, 1, MOST_RUNS, np.array([0, 1, MOST_RUNS - 1]))
    assert some is not None
    assert some.tolist() == [1, 0, 0]


def test_levels_of_rows_that_are_all_there() -> None:
    assert is_all(memoryview(bytes([20, 2])), 2, 10, 2)
    assert is_all(memoryview(bytes([10, 2, 10, 2])), 2, 10, 2)
    assert not is_all(memoryview(bytes([20, 1])), 2, 10, 2)
    assert not is_all(memoryview(bytes([18, 2])), 2, 10, 2)
    assert not is_all(memoryview(bytes([3, 0b10101010, 0b10101010])), 2, 8, 2)


@pytest.fixture
def picks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts were picked, each time that some were."""
    found: list[int] = []

    def spied(*args: Any) -> pa.Array | None:
        texts = pick(*args)
        if texts is not None:
            found.append(len(texts))
        return texts

    monkeypatch.setattr(few, "pick", spied)
    return found


def events(**more: Any) -> pa.Table:
    return pa.table(
        {
            "n": pa.array(range(ROWS)),
            "who": pa.StructArray.from_arrays(
                [
                    pa.array([f"user-{i}" for i in range(ROWS)]),
                    pa.array([f"team-{i // 3}" for i in range(ROWS)]),
                    pa.array([i % 100 for i in range(ROWS)]),
                ],
                ["name", "team", "age"],
            ),
            **more,
        }
    )


def test_texts_of_few_rows_are_picked(run: Any, parquet: Any, picks: list[int]) -> None:
    table = events()
    scan = parquet(table, rows=ROWS)
    wanted = (path("who.age") == 7) & (path("who.name") != "user-107")
    rows, counters = run(scan.filter(wanted).select("n", path("who.name"), path("who.team")))
    expected = [(i, f"user-{i}", f"team-{i // 3}") for i in range(7, ROWS, 100) if i != 107]
    assert [tuple(row.values()) for row in rows] == expected
    # The names are picked for the condition and stay for the result; the teams for the result.
    assert picks == [200, 199]
    assert (counters.columns_decoded, counters.columns_skipped) == (4, 0)


def test_a_struct_keeps_what_was_decoded_beside_what_was_picked(
    run: Any, parquet: Any, picks: list[int]
) -> None:
    table = events()
    rows, _ = run(parquet(table, rows=ROWS).filter(col("n") % 1_000 == 3))
    assert picks == [20, 20]
    assert rows == [row for row in table.to_pylist() if row["n"] % 1_000 == 3]


def test_many_rows_and_small_files_are_decoded_as_a_whole(
    run: Any, parquet: Any, picks: list[int]
) -> None:
    table = events()
    rows, _ = run(parquet(table, rows=ROWS).filter(path("who.age") < 50))
    assert len(rows) == ROWS // 2
    small = table.slice(0, 5_000)
    assert len(run(parquet(small, rows=5_000).filter(path("who.age") == 3))[0]) == 50
    assert picks == []


def test_top_rows_fetch_texts_by_picking(run: Any, parquet: Any, picks: list[int]) -> None:
    table = events(score=pa.array([(i * 7919) % ROWS for i in range(ROWS)]))
    scan = parquet(table, rows=ROWS // 2)
    rows, _ = run(scan.top_k(5, col("score").desc(), path("who.name")))
    assert picks
    order = pc.sort_indices(table["score"], sort_keys=[("score", "descending")])[:5]
    assert rows == table.take(order).to_pylist()


def test_lists_of_few_texts_are_judged_by_text(run: Any, parquet: Any) -> None:
    labels = [None, [], ["bug"], ["docs", "p0"], [None], ["p0", "p0"], [None, "p0"]]
    table = events(
        labels=pa.array([labels[i % 7] for i in range(ROWS)]),
        deep=pa.array([{"labels": labels[i % 7]} if i % 2 else None for i in range(ROWS)]),
    )
    scan = parquet(table, rows=ROWS // 3)
    rows, _ = run(scan.filter(col("labels").any(element() == "p0")).select("n"))
    assert [row["n"] for row in rows] == [i for i in range(ROWS) if i % 7 in (3, 5, 6)]
    rows, _ = run(scan.filter(path("deep.labels").any(element().is_null())).select("n"))
    assert [row["n"] for row in rows] == [i for i in range(ROWS) if i % 2 and i % 7 in (4, 6)]
    both = (col("n") < 1_000) & col("labels").any((element() == "bug") | (element() == "docs"))
    rows, _ = run(scan.filter(both).select("n"))
    assert [row["n"] for row in rows] == [i for i in range(1_000) if i % 7 in (2, 3)]
    rows, _ = run(scan.filter(col("labels").all(element() == "p0")).select("n"))
    assert [row["n"] for row in rows] == [i for i in range(ROWS) if i % 7 in (1, 5)]


def test_rows_that_were_not_picked_are_picked_when_they_are_asked_for(
    tmp_path: Path, picks: list[int]
) -> None:
    """Top-k looks at a row group twice, and at more rows the second time."""
    file = str(tmp_path / "a.parquet")
    pq.write_table(events(), file)
    source = ParquetSource(file, {}, Context(ArrowSettings(), Counters(), Files()))
    wanted = t.Struct.of(who=t.Struct.of(name=t.STRING))
    group = source.group(0)
    for rows in ([3, 50, 700], [50], [3, 50, 9_000]):
        found = group.columns(wanted, np.array(rows)).column("who")
        assert found.to_pylist() == [{"name": f"user-{row}"} for row in rows]
    assert picks == [3, 3]  # the second time they were there
