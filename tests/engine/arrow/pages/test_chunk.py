"""What is read out of pages is what pyarrow reads; what can't be is left to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.arrow.pages.stored import OPTIONS, columns, needs_library, stored

from millpond.engine.arrow.source.pages import PAGE_ERRORS, DamagedPage, StoredChunk, UnknownPage

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = needs_library


def same(found: pa.Array, expected: pa.Array) -> bool:
    """Whether values are alike; NaN is, too."""
    found.validate(full=True)
    return str(found.to_pylist()) == str(expected.to_pylist())


@given(columns(), OPTIONS, st.lists(st.integers(1, 900), max_size=8), st.booleans())
def test_rows_in_order(
    table: pa.Table, options: dict[str, Any], parts: list[int], numbered: bool
) -> None:
    given = stored(table, **options)
    chunk, row = given.chunk(), 0
    for part in [*parts, len(table)]:
        part = min(part, len(table) - row)
        found = chunk.next(part, numbered=numbered)
        assert same(found, given.column.slice(row, part))
        row += part


@given(columns(), OPTIONS, st.integers(0, 1 << 30), st.integers(1, 400))
def test_rows_at_places(table: pa.Table, options: dict[str, Any], seed: int, count: int) -> None:
    given = stored(table, **options)
    places = np.unique(np.random.default_rng(seed).integers(0, len(table), count))
    assert same(given.chunk().at(places), given.column.take(pa.array(places)))


def test_texts_stay_dictionaries_if_that_is_asked_for_and_they_are_all_numbered() -> None:
    texts = pa.array([None if i % 9 == 0 else f"kind {i % 5}" for i in range(5_000)])
    given = stored(pa.table({"t": texts}))
    assert given.chunk().next(5_000, numbered=True).type == pa.dictionary(pa.int32(), pa.string())
    assert given.chunk().next(5_000).type == pa.string()
    assert given.chunk().at(np.array([3])).type == pa.string()
    mixed = stored(
        pa.table({"t": [f"{i}" for i in range(5_000)]}),
        dictionary_pagesize_limit=2_000,
        data_page_size=1_000,
    )
    assert mixed.chunk().next(5_000, numbered=True).type == pa.string()


def test_pages_without_wanted_rows_stay_packed() -> None:
    given = stored(
        pa.table({"n": np.arange(10_000)}),
        use_dictionary=False,
        data_page_size=1_000,
        write_batch_size=100,
        compression="zstd",
    )
    broken = bytearray(given.content)
    broken[-40:] = b"\xff" * 40  # in the last page
    chunk = given.chunk(bytes(broken))
    assert chunk.at(np.array([5, 4_000])).to_pylist() == [5, 4_000]
    with pytest.raises(DamagedPage):
        chunk.at(np.array([5, 9_999]))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2], pa.int8()),
        pa.array([1, 2], pa.uint32()),
        pa.array([True, False]),
        pa.array([1, 2], pa.decimal128(9, 2)),
        pa.array([b"ab", b"cd"], pa.binary(2)),
        pa.array([["a"], []]),
        pa.array([[("k", "v")], []], pa.map_(pa.string(), pa.string())),
        pa.array([1, 2], pa.time64("us")),
    ],
    ids=lambda values: str(values.type),
)
def test_leaves_that_arrow_has_in_another_way_are_left_to_pyarrow(values: pa.Array) -> None:
    assert stored(pa.table({"v": values})).leaf is None


def test_old_timestamps_are_left_to_pyarrow() -> None:
    times = pa.table({"v": pa.array([1, 2], pa.timestamp("us"))})
    assert stored(times, use_deprecated_int96_timestamps=True).leaf is None


@pytest.mark.parametrize(
    "options",
    [
        {"use_dictionary": False, "column_encoding": {"v": "DELTA_BYTE_ARRAY"}},
        {"use_dictionary": False, "column_encoding": {"v": "DELTA_LENGTH_BYTE_ARRAY"}},
        {"compression": "brotli"},
        {"compression": "lz4"},
    ],
    ids=str,
)
def test_what_is_stored_in_other_ways_is_left_to_pyarrow(options: dict[str, Any]) -> None:
    given = stored(pa.table({"v": [f"text {i}" for i in range(100)]}), **options)
    with pytest.raises(UnknownPage):
        given.chunk()


def test_rows_that_are_not_there_are_damage() -> None:
    given = stored(pa.table({"v": [f"text {i}" for i in range(100)]}))
    with pytest.raises(DamagedPage):
        given.chunk().at(np.array([3, 100]))
    with pytest.raises(DamagedPage):
        given.chunk(given.content[: len(given.content) // 2])
    with pytest.raises(DamagedPage):
        given.chunk(given.content[:-1])


@given(columns(), OPTIONS, st.integers(0, 1 << 30))
def test_damage_is_found_or_gives_as_many_rows(
    table: pa.Table, options: dict[str, Any], seed: int
) -> None:
    """It is not always seen, here as there; it never ends in another error, or in none."""
    rng = np.random.default_rng(seed)
    given = stored(table, **options)
    damaged = np.frombuffer(given.content, np.uint8).copy()
    places = rng.integers(0, len(damaged), rng.integers(1, 4))
    damaged[places] = rng.integers(0, 256, len(places))
    content = damaged.tobytes()[: rng.integers(1, len(damaged) + 1) if seed % 3 == 0 else None]
    wanted = np.unique(rng.integers(0, len(table), 5))
    ways: tuple[tuple[Callable[[StoredChunk], pa.Array], int], ...] = (
        (lambda chunk: chunk.next(len(table)), len(table)),
        (lambda chunk: chunk.next(len(table), numbered=True), len(table)),
        (lambda chunk: chunk.at(wanted), len(wanted)),
    )
    for read, count in ways:
        try:
            found = read(given.chunk(content))
        except PAGE_ERRORS:
            continue
        assert len(found) == count
