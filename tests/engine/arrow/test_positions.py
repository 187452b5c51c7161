"""Heads, tails and positions: how few row groups they read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from millpond.base.errors import EvaluationError, SourceError
from millpond.plan.expr import col
from millpond.plan.make import values

DATA = pa.table({"id": list(range(100)), "w": [str(i) for i in range(100)]})


@pytest.mark.parametrize("count", [0, 1, 10, 11, 55, 100, 101])
def test_tail(count: Any, run: Any, parquet: Any, tiny: Any) -> None:
    expected = DATA.to_pylist()[100 - min(count, 100) :]
    assert run(values(DATA).tail(count), tiny)[0] == expected
    rows, counters = run(parquet(DATA).tail(count))
    assert rows == expected
    assert counters.batches_decoded == min(-(-count // 10), 10)
    assert counters.batches_decoded + counters.early_exit_batches_skipped in (1, 10)


def test_tail_of_many_files_opens_the_last(run: Any, parquet: Any) -> None:
    rows, counters = run(parquet(DATA, DATA, DATA).tail(15))
    assert [row["id"] for row in rows] == list(range(85, 100))
    assert counters.files_opened == 1
    rows, counters = run(parquet(DATA, DATA, DATA).filter(col("id") < 5).tail(7))
    assert [row["id"] for row in rows] == [3, 4, 0, 1, 2, 3, 4]
    assert (counters.files_opened, counters.batches_decoded) == (2, 2)


@pytest.mark.parametrize("indices", [[], [0], [99, 0, 5, 5, 50], list(range(99, -1, -1))])
def test_take(indices: Any, run: Any, parquet: Any, tiny: Any) -> None:
    groups = len({index // 10 for index in indices})
    for plan in (values(DATA), parquet(DATA), parquet(DATA).filter(col("id") >= 0)):
        rows, _ = run(plan.take(indices), tiny)
        assert [row["id"] for row in rows] == indices
    _, counters = run(parquet(DATA).select("w").take(indices))
    assert counters.batches_decoded == groups
    assert counters.columns_decoded == groups


def test_take_stops_after_the_last_position(run: Any, parquet: Any) -> None:
    _, counters = run(parquet(DATA, DATA).take([3]))
    assert (counters.files_opened, counters.batches_decoded) == (1, 1)
    _, counters = run(parquet(DATA).filter(col("id") >= 0).take([12]))
    assert (counters.batches_decoded, counters.early_exit_batches_skipped) == (2, 8)


def test_known_row_counts_save_opening_files(run: Any, parquet: Any) -> None:
    scan = parquet(DATA, DATA, DATA)
    known = replace(scan, files=tuple(replace(f, rows=100) for f in scan.files))
    rows, counters = run(known.take([250]))
    assert (rows[0]["id"], counters.files_opened) == (50, 1)
    wrong = replace(scan, files=tuple(replace(f, rows=90) for f in scan.files))
    with pytest.raises(SourceError, match="has 100 rows, the plan says 90"):
        run(wrong.take([250]))


def test_a_position_past_the_end_is_named(run: Any, parquet: Any) -> None:
    for plan in (values(DATA), parquet(DATA), parquet(DATA).filter(col("id") < 100)):
        with pytest.raises(EvaluationError, match="no row at position 100: there are 100"):
            run(plan.take([5, 100]))
