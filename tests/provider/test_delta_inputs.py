"""Delta tables that others write, as inputs of factories: only what changed is computed again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest
from tests.provider.ponds import at, make, rows_of

import millpond as mp
from millpond.provider import stretch

if TYPE_CHECKING:
    from millpond.steward.pond import Pond

A_DAY, OF_LOGS = 240, 200
SCHEMA = pa.schema({"timestamp": pa.timestamp("us", "UTC"), "level": pa.float64()})


def write(place: Path, rows: list[dict[str, Any]], **more: Any) -> None:
    table = pa.Table.from_pylist(rows, SCHEMA)
    deltalake.write_deltalake(str(place), table, mode="append", **more)


def days(*numbers: int) -> list[dict[str, Any]]:
    times = [24 * n + m / 10 for n in numbers for m in range(A_DAY)]
    return [{"timestamp": at(hours), "level": float(hours // 24)} for hours in times]


@pytest.fixture
def pond(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pond:
    monkeypatch.setattr(stretch, "STRETCH_ROWS", 200)
    return mp.create(tmp_path / "pond")


def kept(pond: Pond, kind: str) -> set[str]:
    return {file.name for file in (Path(pond.location) / "cache" / kind).rglob("*.parquet")}


def test_a_join_computes_what_is_new(pond: Pond, tmp_path: Path) -> None:
    for number in range(12):
        write(tmp_path / "d", days(number))
    source = {"pattern": f"host+delta://{tmp_path}/d", "scope": "D"}
    make(pond, "/j", "timeseries-join", inputs=[source])
    assert [row["D.level"] for row in rows_of(pond, "/j")] == [
        n // A_DAY for n in range(12 * A_DAY)
    ]
    before = kept(pond, "joined")
    assert len(before) > 3
    write(tmp_path / "d", days(12))
    with mp.collect_stats() as seen:
        assert len(rows_of(mp.open(pond.location), "/j", time_start=at(12 * 24))) == A_DAY
    assert seen.rows_decoded < 4 * A_DAY + OF_LOGS, "not those of the days before"
    assert before & kept(pond, "joined"), "what was kept is used"
    assert len(rows_of(mp.open(pond.location), "/j")) == 13 * A_DAY


def test_a_reduction_of_a_range_reads_the_files_of_the_range(pond: Pond, tmp_path: Path) -> None:
    for number in range(8):
        write(tmp_path / "d", days(number))
    make(
        pond,
        "/r",
        "temporal-reduce",
        in_pattern=f"host+delta://{tmp_path}/d",
        out_pattern="d",
        resolutions=["1d"],
        aggregations=[{"type": "avg", "columns": ["level"]}],
    )
    with mp.collect_stats() as seen:
        found = rows_of(pond, "/r/d/res=1d.series", time_start=at(24 * 6))
    assert [row["level.avg"] for row in found] == [6, 7]
    assert seen.rows_decoded < 3 * A_DAY + OF_LOGS
    assert [row["level.avg"] for row in rows_of(pond, "/r/d/res=1d.series")] == list(range(8))


def test_files_without_statistics_and_rows_without_a_time_hide_no_others(
    pond: Pond, tmp_path: Path
) -> None:
    write(tmp_path / "d", [*days(0), {"timestamp": None, "level": -1.0}])
    write(tmp_path / "d", days(3), configuration={"delta.dataSkippingNumIndexedCols": "0"})
    write(tmp_path / "d", days(5))
    source = {"pattern": f"host+delta://{tmp_path}/d", "scope": "D"}
    make(pond, "/j", "timeseries-join", inputs=[source])
    joined = rows_of(pond, "/j")
    assert len(joined) == 3 * A_DAY, "a row without a time is in no join"
    found = [row["D.level"] for row in joined]
    assert found == [day for day in (0, 3, 5) for _ in range(A_DAY)]
