"""Rows of arrays by position and by what is gone: as many as asked for, and none behind the end."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.engine.arrow.source.choice import Left, Picked

ARRAYS = [
    pa.array([1, None, 3, 4, 5]),
    pa.array(["a", "b", None, "", "e"]),
    pa.array(["a", "b", None, "a", "a"]).dictionary_encode(),
    pa.array([[1], None, [], [2, 3], [4]]),
    pa.array([{"x": 1}, None, {"x": None}, {"x": 4}, {"x": 5}]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.type))
@given(rows=st.lists(st.integers(0, 4)))
def test_picked_rows(array: pa.Array, rows: list[int]) -> None:
    choice = Picked(np.array(rows, np.int64))
    assert choice.count == len(rows)
    assert choice.of(array).to_pylist() == [array[row].as_py() for row in rows]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.type))
@given(gone=st.sets(st.integers(0, 4)), more=st.integers(0, 3))
def test_rows_that_are_left(array: pa.Array, gone: set[int], more: int) -> None:
    choice = Left(5, np.array(sorted(gone), np.int64))
    longer = pa.concat_arrays([array, array.slice(0, more)])
    left = [row for row in range(5) if row not in gone]
    assert choice.count == len(left)
    assert choice.of(longer).to_pylist() == [array[row].as_py() for row in left]


def test_rows_that_are_not_there() -> None:
    few = pa.array([1, 2])
    for choice in (Picked(np.array([0, 2])), Left(3, np.array([0])), Left(30, np.array([0]))):
        with pytest.raises(IndexError):
            choice.of(few)
    with pytest.raises(IndexError):
        Picked(np.array([1, -1]))
