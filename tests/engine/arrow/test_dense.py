"""Texts of dictionaries written out: the same as `cast` makes of them, whichever way is taken."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.engine.arrow.source.dense import dense


@given(
    words=st.lists(st.text(max_size=5), min_size=1, max_size=8, unique=True)
    | st.lists(st.text("abc", min_size=3, max_size=3), min_size=1, max_size=8, unique=True),
    data=st.data(),
)
def test_texts_are_those_of_a_cast(words: list[str], data: st.DataObject) -> None:
    numbers = st.integers(0, len(words) - 1)
    places = data.draw(st.lists(numbers | st.none() if data.draw(st.booleans()) else numbers))
    skipped = data.draw(st.integers(0, len(words) - 1))
    dictionary = pa.array(["left out"] * skipped + words).slice(skipped)
    array = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), dictionary)
    array = array.slice(data.draw(st.integers(0, len(array))))
    found = dense(array, pa.string())
    found.validate(full=True)
    assert found.type == pa.string()
    assert found.to_pylist() == array.to_pylist()


@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.uint64()])
def test_numbers_of_any_width(index: pa.DataType) -> None:
    numbers = pa.array([1, 0, 1], index)
    array = pa.DictionaryArray.from_arrays(numbers, pa.array(["no", "yes"]))
    assert dense(array, pa.string()).to_pylist() == ["yes", "no", "yes"]


def test_bytes_become_text_and_nulls_of_the_dictionary_stay() -> None:
    words = pa.array([b"ab", None, b"cd"])
    array = pa.DictionaryArray.from_arrays(pa.array([2, 1, 0], pa.int32()), words)
    assert dense(array, pa.string()).to_pylist() == ["cd", None, "ab"]


@pytest.mark.parametrize("number", [2, -1])
@pytest.mark.parametrize("words", [["ab", "cd"], ["ab", "cde"]])
def test_a_number_without_a_text_is_refused(words: list[str], number: int) -> None:
    numbers = pa.array(np.array([0, number], np.int32))
    array = pa.DictionaryArray.from_arrays(numbers, pa.array(words), safe=False)
    with pytest.raises((pa.ArrowInvalid, IndexError)):
        dense(array, pa.string())
