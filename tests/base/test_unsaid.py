"""What was concealed is in no error, however it was made and wherever it came from."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from millpond.base import unsaid
from millpond.base.errors import PathNotFoundError
from millpond.base.unsaid import cause_of, conceal, masked
from millpond.plan.expr import col
from millpond.plan.make import values

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "swordfish-77"


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    conceal(SECRET, "${env:WORD}")
    yield
    unsaid._taken.pop(SECRET, None)


def test_errors_do_not_say_it() -> None:
    error = PathNotFoundError(f"no {SECRET}", path=f"/{SECRET}", hint=f"look for {SECRET}")
    for shown in (str(error), repr(error), error.message, str(error.to_dict())):
        assert SECRET not in shown
        assert "${env:WORD}" in shown
    assert error.path == f"/{SECRET}", "who handles the error may need it"


def test_nor_do_those_of_a_process_that_does_not_know_it() -> None:
    unsaid._taken.clear()
    sent = pickle.dumps(PathNotFoundError(f"no {SECRET}", path="/", hint=f"not {SECRET}"))
    conceal(SECRET, "${env:WORD}")
    assert SECRET not in str(pickle.loads(sent))


def test_plans_do_not_show_it() -> None:
    plan = values([{"x": "a"}]).filter(col("x") == SECRET)
    shown = str(plan), repr(plan), plan.explain(), plan.explain(format="json")
    assert not any(SECRET in each for each in (*shown, repr(col("x") == SECRET)))
    assert plan.to_pylist(engine="arrow") == []
    assert values([{"x": SECRET}]).filter(col("x") == SECRET).to_pylist(engine="arrow")


def test_a_cause_that_says_it_is_not_told() -> None:
    assert cause_of(ValueError("other")) is not None
    assert cause_of(ValueError(f"bad {SECRET}")) is None


def test_what_is_short_is_in_many_words() -> None:
    conceal("abc", "${env:SHORT}")
    assert masked("abcdef") == "abcdef"
