"""Nodes that order rows or choose them by position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from millpond.base.errors import PlanError, SchemaError, TypeMismatchError
from millpond.plan import types as t
from millpond.plan.expr import col, path
from millpond.plan.make import values
from millpond.plan.order import Head, Sample, Take

if TYPE_CHECKING:
    from collections.abc import Callable

P = values([], t.Struct.of(a=t.LONG, s=t.STRING, li=t.List(t.LONG)))


@pytest.mark.parametrize(
    ("plan", "label"),
    [
        (P.sort("a", col("s").desc(nulls="first")), "a, s desc nulls first"),
        (P.sort(col("a") % 3), "(a % 3)"),
        (P.top_k(3, path("li[0]")), "3 by li[0]"),
        (P.head(), "5"),
        (P.tail(0), "0"),
        (P.take([]), ""),
        (P.take(range(12)), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … 12 in all"),
        (P.sample(3, seed=1), "3 seed 1"),
        (P.sample(fraction=1, seed=-1), "1.0 seed -1"),
        (P.shuffle(seed=0), "seed 0"),
    ],
)
def test_rows_keep_their_columns(plan: Head, label: str) -> None:
    assert plan.schema is P.schema
    assert plan.label() == label
    assert plan.children == (P,)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: P.sort(), PlanError, "at least one key"),
        (lambda: P.top_k(3), PlanError, "at least one key"),
        (lambda: P.sort("li"), TypeMismatchError, "li is a list<long> and has no order"),
        (lambda: P.sort("z"), SchemaError, "no column 'z'"),
        (lambda: P.top_k(-1, "a"), PlanError, "from 0 on, not -1"),
        (lambda: P.head(-1), PlanError, "from 0 on, not -1"),
        (lambda: P.head(1.5), PlanError, "from 0 on, not 1.5"),  # type: ignore[arg-type]
        (lambda: P.head(True), PlanError, "from 0 on, not True"),
        (lambda: P.head(2**63), PlanError, "a number of rows"),
        (lambda: P.tail(-3), PlanError, "from 0 on, not -3"),
        (lambda: P.take([0, -1]), PlanError, "positions count from 0"),
        (lambda: P.take([2**63]), PlanError, "positions count from 0"),
        (lambda: P.take([1.5]), PlanError, "a position is a whole number, not 1.5"),  # type: ignore[list-item]
        (lambda: P.sample(seed=1), PlanError, "either a number of rows or a fraction"),
        (lambda: P.sample(3, fraction=0.5, seed=1), PlanError, "either a number of rows"),
        (lambda: P.sample(-3, seed=1), PlanError, "from 0 on, not -3"),
        (lambda: P.sample(fraction=1.5, seed=1), PlanError, "from 0 to 1, not 1.5"),
        (
            lambda: P.sample(fraction=float("nan"), seed=1),
            PlanError,
            "from 0 to 1, not nan",
        ),
        (lambda: P.sample(1, seed=2**63), PlanError, "a whole 64-bit number"),
        (lambda: P.shuffle(seed=-(2**63) - 1), PlanError, "a whole 64-bit number"),
        (lambda: P.shuffle(seed="x"), PlanError, "a whole 64-bit number: 'x'"),  # type: ignore[arg-type]
    ],
)
def test_nodes_that_can_not_be(
    build: Callable[[], object], error: type[PlanError], message: str
) -> None:
    with pytest.raises(error) as raised:
        build()
    assert message in raised.value.message


def test_hints() -> None:
    with pytest.raises(PlanError) as raised:
        P.take([-1])
    assert raised.value.hint == "use tail() to count from the end"
    with pytest.raises(PlanError) as raised:
        P.sort("li")
    assert raised.value.hint == "sort by a part of it"


def test_numbers_have_one_form() -> None:
    taken = P.take(list(np.array([3, 0])))
    assert isinstance(taken, Take)
    assert [type(index) for index in taken.indices] == [int, int]
    assert taken == P.take([3, 0])
    whole = P.sample(fraction=1, seed=1)
    assert isinstance(whole, Sample)
    assert isinstance(whole.fraction, float)
    assert whole == P.sample(fraction=1.0, seed=1)
