"""Texts that all differ are known to; those that may not are never taken for different ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.kernel import distinct
from millpond.kernel.distinct import Distinct, numbers_of


def texts(*values: str) -> pa.Array:
    return pa.array(values, pa.string())


ALIKE = [
    *("", "\0", "\0\0", "a", "a\0", "b", "é", "e\u0301", "ab", "ba"),
    *("x" * length for length in range(1, 30)),
    *("x" * 7 + "y", "y" + "x" * 7, "x" * 8 + "\0", "x" * 8 + "y", "x" * 16 + "y", "y" + "x" * 16),
    *("part_1/file_11", "part_11/file_1", "12345678abcdefgh", "abcdefgh12345678"),
]


def test_texts_that_are_nearly_the_same_have_numbers_of_their_own() -> None:
    numbers = numbers_of(texts(*ALIKE))
    assert numbers is not None
    assert len(set(numbers.tolist())) == len(ALIKE) == len(set(ALIKE))
    assert (numbers % 2 == 1).all()


@pytest.mark.parametrize("text", ALIKE, ids=repr)
def test_the_number_of_a_text_does_not_depend_on_where_it_stands(text: str) -> None:
    (alone,) = numbers_of(texts(text))  # type: ignore[misc]
    among = texts("before", text, "after" * 9, text)
    assert numbers_of(among)[[1, 3]].tolist() == [alone] * 2  # type: ignore[index]
    assert numbers_of(among.slice(1, 1)).tolist() == [alone]  # type: ignore[union-attr]
    assert numbers_of(among.slice(3)).tolist() == [alone]  # type: ignore[union-attr]
    assert numbers_of(among.cast(pa.large_string())[3:]).tolist() == [alone]  # type: ignore[union-attr]


def test_no_texts_have_no_numbers() -> None:
    assert numbers_of(texts()).tolist() == []  # type: ignore[union-attr]
    assert Distinct().add(texts())


def test_a_very_long_text_is_left_to_others() -> None:
    long = "x" * (1 << 12)
    assert Distinct().add(texts(long, long[:-1]))
    assert not Distinct().add(texts("a", long + "x"))


@given(st.lists(st.lists(st.text("ab\0é", max_size=10), max_size=8), max_size=5))
@settings(deadline=None)
def test_it_is_over_with_the_first_text_that_comes_again(batches: list[list[str]]) -> None:
    found, seen = Distinct(), list[str]()
    for batch in batches:
        seen += batch
        differ = len(set(seen)) == len(seen)
        assert found.add(texts(*batch)) == differ
        if not differ:
            break


@pytest.mark.parametrize("again", [0, 4_321, 29_999, 30_000], ids=str)
def test_many_texts(again: int) -> None:
    found = Distinct()
    names = [f"part={number % 7}/{number}.parquet" for number in range(30_000)]
    for start in range(0, len(names), 5_000):
        assert found.add(texts(*names[start : start + 5_000]))
    new = [f"new {number}" for number in range(100)]
    assert found.add(texts(*new, *names[again : again + 1])) == (again == len(names))


@pytest.mark.parametrize("place", [0, 1, 7, (1 << 10) - 1], ids=str)
def test_numbers_for_the_same_place_find_others(place: int, monkeypatch: Any) -> None:
    base = place << 54

    def numbers(texts: pa.Array) -> Any:
        return np.array([base + 2 * int(text) + 1 for text in texts.to_pylist()], np.uint64)

    monkeypatch.setattr(distinct, "numbers_of", numbers)
    found = Distinct()
    assert found.add(texts("1", "2", "3"))
    assert found.add(texts("4", "5"))
    assert found.add(texts(*map(str, range(6, 700))))  # and the table has grown
    assert not found.add(texts("800", "3"))
    other = Distinct()
    assert not other.add(texts("1", "2", "3", "2"))
