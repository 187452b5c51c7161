"""Stateful functions: order, state across batches, one state a key, errors that name the row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.base.errors import EvaluationError
from millpond.plan import types as t
from millpond.plan.expr import col
from millpond.plan.make import values
from millpond.plan.streams import StatefulFunction

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA = pa.table({"k": ["a", "b", None] * 7, "x": list(range(21)), "f": [0.0, -0.0, math.nan] * 7})


class Totalled:
    def __init__(self) -> None:
        self.total = 0

    def eval(self, args: tuple[Any, ...], *, accept: bool) -> Any:
        if accept:
            self.total += args[0]
        return self.total

    def snapshot(self) -> Any:
        return self.total

    def restore(self, state: Any) -> None:
        self.total = state


@dataclass(frozen=True)
class Total:
    name: str = "total"
    gives: t.DataType = t.LONG
    maker: type[Totalled] = Totalled

    @property
    def config(self) -> Mapping[str, Any]:
        return {}

    def return_type(self, input_types: tuple[t.DataType, ...]) -> t.DataType:
        return self.gives

    def create_instance(self) -> Totalled:
        return self.maker()


def test_state_lives_across_batches_and_begins_anew(run: Any, tiny: Any) -> None:
    plan = values(DATA).stateful("sum", Total(), "x")
    for on in (tiny, tiny):
        rows, _ = run(plan, on)
        assert [row["sum"] for row in rows] == [sum(range(n + 1)) for n in range(21)]


def test_a_filter_decides_what_is_accepted(run: Any) -> None:
    plan = values(DATA).stateful("sum", Total(), "x", where=col("k") == "a")
    rows, _ = run(plan)
    assert [row["sum"] for row in rows][:7] == [0, 0, 0, 3, 3, 3, 9]


def test_each_key_has_its_own_state(run: Any, tiny: Any) -> None:
    rows, _ = run(values(DATA).stateful("sum", Total(), "x", partition_by=["k"]), tiny)
    assert [row["sum"] for row in rows][:6] == [0, 1, 2, 3, 5, 7]
    rows, _ = run(values(DATA).stateful("sum", Total(), "x", partition_by=["f"]), tiny)
    assert [row["sum"] for row in rows][:6] == [0, 1, 2, 4, 8, 7]


def test_later_mappings_see_earlier_ones(run: Any) -> None:
    first = values(DATA).stateful("sum", Total(), "x")
    both = first.stateful("twice", Total(), "sum")
    assert isinstance(first, StatefulFunction)
    assert isinstance(both, StatefulFunction)
    plan = StatefulFunction(values(DATA), (*first.mappings, *both.mappings))
    rows, _ = run(plan)
    assert [(row["sum"], row["twice"]) for row in rows][:4] == [(0, 0), (1, 1), (3, 4), (6, 10)]


def test_an_error_of_the_function_names_it_and_the_row(run: Any, tiny: Any) -> None:
    class Broken(Totalled):
        def eval(self, args: tuple[Any, ...], *, accept: bool) -> Any:
            return 1 // (args[0] - 16)

    with pytest.raises(
        EvaluationError, match="total failed at row 16: ZeroDivisionError"
    ) as caught:
        run(values(DATA).stateful("s", Total(maker=Broken), "x"), tiny)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_result_of_another_type_is_named(run: Any, tiny: Any) -> None:
    class Wrong(Totalled):
        def eval(self, args: tuple[Any, ...], *, accept: bool) -> Any:
            return "text" if args[0] == 9 else 1

    with pytest.raises(EvaluationError, match="total gave 'text' at row 9, which is not a long"):
        run(values(DATA).stateful("s", Total(maker=Wrong), "x"), tiny)


def test_nested_results(run: Any) -> None:
    class Pair(Totalled):
        def eval(self, args: tuple[Any, ...], *, accept: bool) -> Any:
            return {"l": [args[0]], "none": None}

    gives = t.Struct.of(l=t.List(t.LONG), none=t.STRING)
    rows, _ = run(values(DATA).stateful("s", Total(gives=gives, maker=Pair), "x").head(1))
    assert rows[0]["s"] == {"l": [0], "none": None}
