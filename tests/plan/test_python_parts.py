"""Row filters and stateful functions: through the wire by name and config, state for each run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millpond.base.errors import PlanError
from millpond.plan import types as t
from millpond.plan.codec import dumps, loads
from millpond.plan.make import values
from millpond.plan.plugins import ROW_FILTERS, STATEFUL_FUNCTIONS
from millpond.plan.python import RowFilter, StatefulDefinition
from millpond.plan.rows import FilterOrdered
from millpond.plan.streams import StatefulFunction
from millpond.testing.engine.parts import FirstOfKey, FirstOfKeyRun, RunningSum, register

if TYPE_CHECKING:
    from collections.abc import Mapping

P = values([], t.Struct.of(a=t.LONG, s=t.STRING))
register()


def test_the_protocols_are_met() -> None:
    assert isinstance(FirstOfKey("a"), RowFilter)
    assert isinstance(RunningSum(), StatefulDefinition)
    assert not isinstance(RunningSum(), RowFilter)


def test_a_row_filter_is_rebuilt_from_its_config() -> None:
    plan = P.filter_ordered(FirstOfKey("s"))
    back = loads(dumps(plan))
    assert isinstance(back, FilterOrdered)
    assert back.row_filter == FirstOfKey("s")
    assert back == plan
    assert plan != P.filter_ordered(FirstOfKey("a"))
    batch = pa.record_batch({"s": ["x", "y", "x"]})
    run = back.row_filter.open()
    assert run.apply(batch).to_pylist() == [True, True, False]
    assert back.row_filter.open().apply(batch).to_pylist() == [True, True, False]


def test_a_stateful_function_is_rebuilt_from_its_config() -> None:
    plan = P.stateful("total", RunningSum(5), "a", partition_by=["s"])
    back = loads(dumps(plan))
    assert isinstance(back, StatefulFunction)
    assert back.mappings[0].function == RunningSum(5)
    assert back == plan
    assert plan != P.stateful("total", RunningSum(6), "a", partition_by=["s"])
    instance = back.mappings[0].function.create_instance()
    assert [instance.eval((n,), accept=n != 2) for n in (1, 2, 3)] == [6, 6, 9]


@dataclass(frozen=True)
class File:
    """A plugin's class may have the name of one of our parts, and even be a dataclass."""

    columns: tuple[str, ...]
    broken: object = None
    name: str = "testing.file"

    @property
    def config(self) -> Mapping[str, Any]:
        return {"columns": list(self.columns), **({"broken": self.broken} if self.broken else {})}

    def open(self) -> FirstOfKeyRun:
        return FirstOfKeyRun()


def _from_config(columns: list[str]) -> File:
    return File(tuple(columns))


def test_names_of_plugin_classes_do_not_matter() -> None:
    if "testing.file" not in ROW_FILTERS.names():
        ROW_FILTERS.register("testing.file", _from_config)
    plan = P.filter_ordered(File(("a", "s")))
    back = loads(dumps(plan))
    assert back.row_filter == File(("a", "s"))
    assert plan.digest == back.digest


def test_a_config_that_is_no_plain_data_is_refused() -> None:
    plan = P.filter_ordered(File(("a",), broken={1, 2}))
    with pytest.raises(PlanError, match="can't be written") as error:
        dumps(plan)
    assert "plain JSON data" in str(error.value.hint)
    with pytest.raises(PlanError, match="can't be written"):
        plan.digest  # noqa: B018


def test_a_config_that_does_not_fit_is_refused() -> None:
    text = dumps(P.stateful("t", RunningSum(5), "a")).replace('"start":5', '"begin":5')
    with pytest.raises(PlanError, match="begin"):
        loads(text)


def test_both_registries_know_the_parts() -> None:
    assert ROW_FILTERS.get("testing.first_of_key") is FirstOfKey
    assert STATEFUL_FUNCTIONS.get("testing.running_sum") is RunningSum
