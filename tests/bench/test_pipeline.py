"""The suite of pipelines on little data, and that what is compared is the same work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.options import Options
from bench.pipeline import ponds, works
from bench.pipeline.suite import run

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path


def test_an_append(tmp_path: Path) -> None:
    options = Options(rows=2000, only="append_1_percent", data=tmp_path)
    report = run(options, progress=lambda _: None)
    assert [result.error for result in report.results] == [None, None]
    assert [result.contender for result in report.results] == ["pond", "the first time"]
    assert [goal.limit for goal in report.goals] == [0.05]


@pytest.mark.spark
@pytest.mark.parametrize("work", ["reduce", "join", "pivot"])
def test_what_a_person_would_write_gives_the_same_rows(
    spark: Any, tmp_path: Path, work: str
) -> None:
    pond = mp.open(ponds.with_series(tmp_path, 2_000))
    node, by_hand = works._WORKS[work]
    works._make(pond, "/r", *node)
    files = {
        name: works._files(pond, name) for name in ("/s0", "/s1", "/s2", "/s3", "/s4", "/long")
    }
    by_hand(spark, files, f"{tmp_path}/out")
    places = {f"r/s/res={name}.series": name for name in works.RESOLUTIONS}
    for path, place in places.items() if work == "reduce" else [("r", "")]:
        theirs = pq.read_table(f"{tmp_path}/out/{place}").sort_by("timestamp")
        ours = pond[f"/{path}"].to_arrow()
        if work == "pivot":  # by hand, its columns come in any order
            theirs = theirs.select(["timestamp", *sorted(set(theirs.column_names) - {"timestamp"})])
        assert ours.num_rows == theirs.num_rows > 0
        assert ours.num_columns == theirs.num_columns
        for mine, other in zip(ordered(ours), ordered(theirs), strict=True):
            assert mine == pytest.approx(other)


def ordered(table: pa.Table) -> list[list[Any]]:
    """The values of each column, whatever the columns are called; times as numbers."""
    numbers = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
    return [column.to_pylist() for column in numbers]
