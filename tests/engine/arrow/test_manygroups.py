"""Groups by sorting are the groups by hashing, where there are many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import millpond as mp
from millpond.engine.arrow import manygroups
from millpond.engine.arrow.aggregate import combine
from millpond.engine.arrow.manygroups import combine_sorted

STEPS: Any = [(1, "max"), (2, "min"), (3, "max")]


def columns(keys: Any, seed: int, *, nulls: float) -> list[pa.ChunkedArray]:
    rng = np.random.default_rng(seed)
    count = len(keys)
    numbers = rng.integers(-(2**63), 2**63 - 1, count, endpoint=True)
    given = [
        pa.array(keys),
        pa.array(numbers, mask=rng.random(count) < nulls),
        pa.array(rng.integers(-5, 5, count)),
        pa.array(numbers, pa.timestamp("us"), mask=rng.random(count) < nulls),
    ]
    return [pa.chunked_array([each[: count // 3], each[count // 3 :]]) for each in given]


def rows(found: list[pa.Array]) -> list[tuple[Any, ...]]:
    plain = [each.cast(pa.int64()).to_pylist() for each in found]
    return sorted(zip(*plain, strict=True), key=str)


@given(
    st.integers(0, 9999),
    st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    st.sampled_from([1, 2, 7]),
)
def test_the_same_as_by_hashing(seed: int, nulls: float, repeated: int) -> None:
    rng = np.random.default_rng(seed)
    keys = rng.permutation(np.repeat(rng.integers(-(2**62), 2**62, 12_000), repeated))
    given = columns(keys, seed, nulls=nulls)
    found = combine_sorted(given, 1, STEPS)
    assert found is not None
    assert found[0].to_pylist() == sorted(set(keys.tolist()))
    assert [each.type for each in found] == [each.type for each in given]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manygroups, "FEWEST_ROWS", 1 << 62)
        assert rows(found) == rows(combine(given, 1, STEPS))


def test_runs_that_are_in_order() -> None:
    keys = np.concatenate([np.arange(20_000), np.arange(20_000), np.arange(10_000)])
    found = combine_sorted(columns(keys, 1, nulls=0.5), 1, STEPS)
    assert found is not None
    assert found[0].to_pylist() == list(range(20_000))


@pytest.mark.parametrize(
    "given",
    [
        columns(np.arange(100), 0, nulls=0),
        columns(np.arange(50_000) % 100, 0, nulls=0),
        columns(pa.array([None, *range(20_000)]), 0, nulls=0),
        columns([str(n) for n in range(20_000)], 0, nulls=0),
    ],
    ids=["few rows", "few groups", "a key that is null", "texts"],
)
def test_what_is_hashed(given: list[pa.ChunkedArray]) -> None:
    assert combine_sorted(given, 1, STEPS) is None


def test_other_measures_are_hashed() -> None:
    given = columns(np.arange(20_000), 0, nulls=0)
    assert combine_sorted(given, 1, [(1, "max"), (2, "sum")]) is None
    assert combine_sorted(given, 2, [(2, "max")]) is None


@pytest.mark.parametrize("how", ["first", "last"])
def test_the_edges_of_many_groups_are_those_of_hashing(how: str) -> None:
    """Also where keys repeat, values are null, and rows do not count."""
    generator = np.random.default_rng(5)
    rows = 3 * manygroups.FEWEST_ROWS
    keys = pa.array(generator.integers(0, 40 * rows, rows))
    repeated = pa.concat_arrays([keys, keys.take(pa.array(generator.permutation(rows)))])
    values = pa.array([None if n % 7 == 0 else f"v{n}" for n in range(2 * rows)])
    plan = mp.values(pa.table({"k": repeated, "v": values, "n": pa.array(range(2 * rows))}))
    measure = mp.agg.first if how == "first" else mp.agg.last
    counted = plan.aggregate("k", v=measure("v", where=mp.col("n") % 3 != 0))
    found = {row["k"]: row["v"] for row in counted.to_pylist(engine="arrow")}
    wanted: dict[int, str | None] = dict.fromkeys(repeated.to_pylist())
    pairs = list(zip(repeated.to_pylist(), values.to_pylist(), strict=True))
    numbered = [(key, value) for n, (key, value) in enumerate(pairs) if n % 3]
    wanted |= dict(reversed(numbered) if how == "first" else numbered)
    assert found == wanted
