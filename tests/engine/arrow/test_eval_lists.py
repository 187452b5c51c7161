"""`any`, `all`, `contains` and `len` over lists: empty, null, nested, sliced, failing ones."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from tests.engine.arrow.columns import value_of

from millpond.base.errors import EvaluationError
from millpond.engine.arrow.eval import evaluate
from millpond.plan.bind import bind
from millpond.plan.expr import Expr, col, element, lit, path
from millpond.plan.types import BOOLEAN, DOUBLE, LONG, STRING, List, Struct

FLAGS: list[Any] = [
    [],
    None,
    [True],
    [False],
    [None],
    [True, None],
    [False, None],
    [True, False],
    [True, True],
    [False, False, None, True],
]


def test_truth_over_lists() -> None:
    given: dict[str, Any] = {"l": (List(BOOLEAN), FLAGS)}
    some = [False, None, True, False, None, True, None, True, True, True]
    every = [True, None, True, False, None, None, False, False, True, False]
    assert value_of(col("l").any(), **given) == some
    assert value_of(col("l").all(), **given) == every


@pytest.mark.parametrize("literal", [True, False, None])
def test_a_predicate_that_looks_at_no_element(literal: Any) -> None:
    given: dict[str, Any] = {"l": (List(LONG), [[], [1], None])}
    assert value_of(col("l").any(lit(literal, BOOLEAN)), **given) == [False, literal, None]
    assert value_of(col("l").all(lit(literal, BOOLEAN)), **given) == [True, literal, None]


def test_elements_compare_in_the_total_order() -> None:
    nan = float("nan")
    given: dict[str, Any] = {"l": (List(DOUBLE), [[1.0, nan], [1.0], [None], [-0.0]])}
    assert value_of(col("l").contains(nan), **given) == [True, False, None, False]
    assert value_of(col("l").any(element() > 1e300), **given) == [True, False, None, False]
    assert value_of(col("l").contains(0.0), **given) == [False, False, None, True]


ITEM = Struct.of(n=STRING, k=List(LONG))
ITEMS: list[Any] = [
    [{"n": "a", "k": [1, 2]}, None],
    [],
    None,
    [{"n": "b", "k": None}, {"n": None, "k": []}],
    [{"n": "a", "k": [5]}, {"n": "b", "k": [None, 6]}],
]


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (path("l").any(path("n") == "a"), [True, False, None, None, True]),
        (path("l").all(path("n") == "a"), [None, True, None, False, False]),
        (path("l").any(path("k").any(element() > 1)), [True, False, None, None, True]),
        (path("l").all(path("k").all(element() > 1)), [False, True, None, None, None]),
        (path("l").any(path("k").all(element() > 4)), [None, False, None, True, True]),
        (path("l").any(path("k").len() == 1), [None, False, None, None, True]),
        (path("l[*].n").any(element() == "b"), [None, False, None, True, True]),
        (path("l[*].n").contains("b"), [None, False, None, True, True]),
        (path("l").any(path("n").is_null()), [True, False, None, True, False]),
        (path("l").any(path("k[0]") == 5), [None, False, None, None, True]),
        (path("l").len(), [2, 0, None, 2, 2]),
        (
            path("l").any(path("n") == "a") & path("l").any(path("n") == "b"),
            [None, False, None, None, True],
        ),
    ],
    ids=str,
)
def test_structs_and_lists_in_lists(expr: Expr, wanted: list[Any]) -> None:
    assert value_of(expr, l=(List(ITEM), ITEMS)) == wanted


@pytest.mark.parametrize("share", [0.001, 0.02, 0.2, 0.9])
def test_many_lists(share: float) -> None:
    """Few hits and many hits are summed up in different ways."""
    chance = random.Random(7)
    lists: list[Any] = [
        None
        if chance.random() < 0.1
        else [
            None if chance.random() < 0.05 else "hit" if chance.random() < share else "miss"
            for _ in range(chance.choice([0, 0, 1, 2, 30]))
        ]
        for _ in range(3000)
    ]

    def wanted(items: Any) -> Any:
        if items is None:
            return None
        return True if "hit" in items else None if None in items else False

    assert value_of(col("l").contains("hit"), l=(List(STRING), lists)) == [*map(wanted, lists)]


def test_a_list_is_looked_at_up_to_the_element_that_decides() -> None:
    given: dict[str, Any] = {"l": (List(LONG), [[5, 0], [20, 5, 0], [], None])}
    assert value_of(col("l").any(lit(10).div(element()) > 1), **given) == [True, True, False, None]
    assert value_of(col("l").all(lit(10).div(element()) < 1), **given) == [False, False, True, None]
    with pytest.raises(EvaluationError, match="division by zero"):
        value_of(col("l").any(lit(10).div(element()) > 3), **given)


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (col("l").any(element().cast(LONG) > 1), [False, None, True]),
        (col("l").all(element().cast(LONG) > 1), [False, None, None]),
        (col("l").cast(List(LONG)), [[1], None, [2, None]]),
        (col("l").len(), [1, None, 2]),
    ],
    ids=str,
)
def test_what_lies_under_a_null_list_is_not_seen(expr: Expr, wanted: list[Any]) -> None:
    """The null list has two elements that no number can be made of."""
    values = pa.array(["1", "bad", "worse", "2", None])
    mask = pa.array([False, True, False])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3, 5], pa.int32()), values, mask=mask)
    bound = bind(expr, Struct.of(l=List(STRING)))
    for array in (lists, pa.concat_arrays([lists, lists]).slice(3)):
        found = evaluate(bound, pa.RecordBatch.from_arrays([array], ["l"]))
        assert found.to_pylist() == wanted


def test_null_elements_and_errors_element_by_element() -> None:
    given: dict[str, Any] = {"l": (List(LONG), [[None, 5, 0], [None, 20], [1, None]])}
    found = value_of(col("l").any(lit(10).div(element()) > 1), **given)
    assert found == [True, None, True]
