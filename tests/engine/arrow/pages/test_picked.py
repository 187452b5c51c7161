"""Values of few rows are picked out of pages, and only where it pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.engine.arrow.pages.stored import needs_library

from millpond.base.errors import SourceError
from millpond.base.settings import ArrowSettings, Settings
from millpond.engine.arrow import ArrowEngine
from millpond.engine.arrow.context import Context
from millpond.engine.arrow.source.files import Files
from millpond.engine.arrow.source.pages import StoredChunk
from millpond.engine.arrow.source.parquet import ParquetSource
from millpond.plan import types as t
from millpond.plan.arrow import from_arrow_schema
from millpond.plan.counters import Counters
from millpond.plan.expr import col, element, path
from millpond.plan.sources import File, Scan

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 20_000

pytestmark = needs_library


@pytest.fixture
def picks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Of which leaf values were picked, and how many, each time that some were."""
    found: list[tuple[str, int]] = []
    at = StoredChunk.at

    def spied(self: StoredChunk, places: Any) -> pa.Array:
        values = at(self, places)
        found.append((self.leaf.steps[-1], len(values)))
        return values

    monkeypatch.setattr(StoredChunk, "at", spied)
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


def test_values_of_few_rows_are_picked(
    run: Any, parquet: Any, picks: list[tuple[str, int]]
) -> None:
    table = events()
    scan = parquet(table, rows=ROWS)
    wanted = (path("who.age") == 7) & (path("who.name") != "user-107")
    rows, counters = run(scan.filter(wanted).select("n", path("who.name"), path("who.team")))
    expected = [(i, f"user-{i}", f"team-{i // 3}") for i in range(7, ROWS, 100) if i != 107]
    assert [tuple(row.values()) for row in rows] == expected
    # The names are picked for the condition and stay for the result; the others for the result.
    assert picks == [("name", 200), ("n", 199), ("team", 199)]
    assert (counters.columns_decoded, counters.columns_skipped) == (4, 0)


def test_a_struct_keeps_what_was_decoded_beside_what_was_picked(
    run: Any, parquet: Any, picks: list[tuple[str, int]]
) -> None:
    table = events()
    rows, _ = run(parquet(table, rows=ROWS).filter(col("n") % 1_000 == 3))
    assert picks == [("name", 20), ("team", 20), ("age", 20)]
    assert rows == [row for row in table.to_pylist() if row["n"] % 1_000 == 3]


def test_many_rows_and_small_files_are_decoded_as_a_whole(
    run: Any, parquet: Any, picks: list[tuple[str, int]]
) -> None:
    table = events()
    rows, _ = run(parquet(table, rows=ROWS).filter(path("who.age") < 51))
    assert len(rows) == ROWS * 51 // 100
    small = table.slice(0, 5_000)
    assert len(run(parquet(small, rows=5_000).filter(path("who.age") == 3))[0]) == 50
    assert picks == []


def test_nulls_are_picked_as_well(run: Any, parquet: Any, picks: list[tuple[str, int]]) -> None:
    deep = [{"t": f"t{i}" if i % 3 else None, "x": i} if i % 5 else None for i in range(ROWS)]
    table = pa.table({"n": range(ROWS), "deep": deep})
    rows, _ = run(parquet(table, rows=ROWS).filter(col("n") % 100 < 7))
    assert rows == [row for row in table.to_pylist() if row["n"] % 100 < 7]
    assert picks == [("t", 1_400), ("x", 1_400)]


def test_nothing_is_picked_if_the_settings_say_so(
    run: Any, parquet: Any, picks: list[tuple[str, int]]
) -> None:
    plan = parquet(events(), rows=ROWS).filter(path("who.age") == 7)
    plainly = ArrowEngine(settings=Settings.load(env={"MILLPOND_ARROW_NATIVE": "never"}))
    assert run(plan, plainly)[0] == [row for row in events().to_pylist() if row["n"] % 100 == 7]
    assert picks == []
    assert run(plan)[0] == run(plan, plainly)[0]
    assert picks


def test_a_damaged_page_is_left_to_pyarrow_which_says_what_is_wrong(
    run: Any, tmp_path: Path
) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(events(), file, compression="zstd", use_dictionary=False)
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(1)
    content = bytearray(file.read_bytes())
    end = chunk.data_page_offset + chunk.total_compressed_size
    content[end - 40 : end - 8] = b"\xff" * 32
    file.write_bytes(content)
    scan = Scan("parquet", (File(str(file)),), from_arrow_schema(events().schema))
    for plan in (scan.filter(col("n") % 100 == 3), scan):
        with pytest.raises(SourceError, match=r"a\.parquet can't be read: .*ZSTD"):
            run(plan)


def test_top_rows_fetch_texts_by_picking(
    run: Any, parquet: Any, picks: list[tuple[str, int]]
) -> None:
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
    tmp_path: Path, picks: list[tuple[str, int]]
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
    assert picks == [("name", 3), ("name", 3)]  # the second time they were there
