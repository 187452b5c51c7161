"""Samples and shuffles: the hash is Spark's, the choice depends on seed and position alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millpond.engine.arrow.xxhash import position_hashes
from millpond.plan.expr import col
from millpond.plan.make import values

DATA = pa.table({"id": list(range(500))})


@pytest.mark.parametrize(
    ("seed", "position", "expected"),
    [
        # From Spark 4.3: SELECT xxhash64(CAST(seed AS BIGINT), CAST(position AS BIGINT))
        (7, 0, -4457042067931036189),
        (7, 1, 3110148328363424865),
        (7, 2, 4598994807287660699),
        (-1, 1 << 40, -8733115651282301110),
        (0, 0, -9199931545335556226),
        (-(1 << 63), 5, 1589462524786391347),
    ],
)
def test_the_hash_is_sparks(seed: int, position: int, expected: int) -> None:
    assert position_hashes(seed, position, 1).tolist() == [expected]
    start = max(position - 3, 0)
    assert position_hashes(seed, start, 9)[position - start] == expected


def test_a_shuffle_is_the_order_of_hashes(run: Any, parquet: Any, tiny: Any) -> None:
    expected = np.argsort(position_hashes(7, 0, 500), kind="stable").tolist()
    for plan in (values(DATA), parquet(DATA, rows=33)):
        assert [row["id"] for row in run(plan.shuffle(seed=7))[0]] == expected
        rows, counters = run(plan.shuffle(seed=7), tiny)
        assert [row["id"] for row in rows] == expected
        assert counters.spill_bytes > 0


@pytest.mark.parametrize("count", [0, 1, 40, 499, 500, 600])
def test_a_sample_is_the_start_of_the_shuffle_in_row_order(
    count: Any, run: Any, parquet: Any, tiny: Any
) -> None:
    expected = sorted(np.argsort(position_hashes(3, 0, 500), kind="stable")[:count].tolist())
    for plan in (values(DATA), parquet(DATA, rows=33)):
        assert [row["id"] for row in run(plan.sample(count, seed=3), tiny)[0]] == expected


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 1.0])
def test_a_fraction(fraction: Any, run: Any, parquet: Any, tiny: Any) -> None:
    chances = [(h % (1 << 64) >> 11) / 2**53 for h in position_hashes(9, 0, 500).tolist()]
    expected = [i for i, chance in enumerate(chances) if chance < fraction]
    for plan in (values(DATA), parquet(DATA, rows=33)):
        assert [
            row["id"] for row in run(plan.sample(fraction=fraction, seed=9), tiny)[0]
        ] == expected


def test_positions_count_the_rows_that_are_left(run: Any, parquet: Any) -> None:
    even = [row["id"] for row in run(parquet(DATA).filter(col("id") % 2 == 0).shuffle(seed=1))[0]]
    assert even == [2 * i for i in np.argsort(position_hashes(1, 0, 250), kind="stable").tolist()]
