"""State machines with made-up phases: what streams, what is hidden, what a failure leaves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from millpond.base.errors import EngineError, MachineStateError, MillpondError, PhaseError
from millpond.kernel.machine import (
    Consume,
    PartialResult,
    StateMachine,
    StateMachinePhase,
    Terminus,
)
from millpond.kernel.phase import BasePhase
from millpond.kernel.waiting import AsyncStateMachine
from millpond.plan.make import values
from millpond.plan.run import engine_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from millpond.plan.node import Plan


@dataclass(frozen=True)
class Settings(BasePhase):
    """Hidden rows that say how far the results count."""

    def plan(self) -> Plan:
        return values([{"count": 3}])

    def next(self, rows: pa.Table) -> StateMachinePhase[str]:
        return PartialResult(Results(self.table, rows.column("count")[0].as_py()))


@dataclass(frozen=True)
class Results(BasePhase):
    count: int

    @property
    def is_parallelizable(self) -> bool:
        return True

    def plan(self) -> Plan:
        return values([{"n": n} for n in range(self.count)])

    def next(self) -> StateMachinePhase[str]:
        return Terminus(f"{self.count} rows")


def machine(executor: Any = "arrow") -> StateMachine[str]:
    return StateMachine(Consume(Settings("t")), executor, table="t")


def numbers(batches: Any) -> list[int]:
    return [n for batch in batches for n in batch.column("n").to_pylist()]


def test_partial_results_stream_and_configuration_is_hidden() -> None:
    running = machine()
    assert numbers(running) == [0, 1, 2]
    assert running.into_terminal() == "3 rows"
    assert numbers(running) == []
    assert [(s.phase, s.kind, s.parallelizable) for s in running.trace] == [
        ("Settings", "consume", False),
        ("Results", "partial result", True),
    ]


def test_collect_and_run_to_terminal() -> None:
    batches, value = machine().collect()
    assert (numbers(batches), value) == ([0, 1, 2], "3 rows")
    assert machine().run_to_terminal() == "3 rows"


def test_the_terminal_too_early_is_an_error_that_says_so() -> None:
    running = machine()
    with pytest.raises(MachineStateError, match="still before Settings"):
        running.into_terminal()
    batches = iter(running)
    next(batches)
    with pytest.raises(MachineStateError, match="still before Results"):
        running.into_terminal()


def test_one_consumer_at_a_time() -> None:
    running = machine()
    first = iter(running)
    next(first)
    with pytest.raises(MachineStateError, match="being iterated already"):
        next(iter(running))


def test_who_stops_early_can_begin_the_phase_again() -> None:
    running = machine()
    batches = iter(running)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert running.phase == "Results"
    assert running.repeated_rows == 3
    assert numbers(running) == [0, 1, 2]


@dataclass
class Failing:
    """An engine that fails before or while it gives rows, and then works."""

    failures: list[str]
    name: str = "failing"
    _inner: Any = field(default_factory=lambda: engine_named("arrow"))

    @property
    def capabilities(self) -> Any:
        return self._inner.capabilities

    def execute(self, plan: Plan, scope: Any = None) -> Any:
        kind = self.failures.pop(0) if self.failures else None
        if kind == "at once":
            raise EngineError("no engine today", engine=self.name)
        return _Run(self._inner.execute(plan, scope), fails=kind == "in the middle")

    execute_parallel = execute

    def explain(self, plan: Plan, scope: Any = None) -> str:
        return ""


@dataclass
class _Run:
    inner: Any
    fails: bool
    given: int = 0

    @property
    def schema(self) -> pa.Schema:
        return self.inner.schema

    def __iter__(self) -> _Run:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self.fails and self.given:
            raise EngineError("lost in the middle", engine="failing")
        self.given += 1
        batch = next(self.inner)
        return batch.slice(0, 1) if self.fails else batch

    def cancel(self) -> None:
        self.inner.cancel()

    def close(self) -> None:
        self.inner.close()


@pytest.mark.parametrize("kind", ["at once", "in the middle"])
@pytest.mark.parametrize("healthy", [0, 1])
def test_a_failure_names_the_phase_and_a_retry_succeeds(kind: str, healthy: int) -> None:
    running = machine(Failing(["no"] * healthy + [kind]))
    with pytest.raises(PhaseError) as caught:
        running.run_to_terminal()
    assert caught.value.phase == ("Results" if healthy else "Settings")
    assert caught.value.phase in str(caught.value)
    assert "values" in caught.value.plan.lower()
    assert running.phase == caught.value.phase
    assert numbers(running) == [0, 1, 2]
    assert running.into_terminal() == "3 rows"


def test_rows_before_a_failure_are_counted() -> None:
    running = machine(Failing(["no", "in the middle"]))
    seen: list[int] = []
    with pytest.raises(PhaseError):
        seen.extend(batch.num_rows for batch in running)
    assert running.repeated_rows == sum(seen) == 1


@dataclass(frozen=True)
class Refusing(Settings):
    def failed(self, error: MillpondError) -> MillpondError:
        return MachineStateError(f"told otherwise: {error.message}", table=self.table)


def test_a_phase_may_tell_a_failure_in_its_own_words() -> None:
    running: StateMachine[str] = StateMachine(Consume(Refusing("t")), Failing(["at once"]))
    with pytest.raises(MachineStateError, match="told otherwise: no engine today"):
        running.run_to_terminal()


@dataclass(frozen=True)
class Detour(Results):
    def instead(self, error: MillpondError) -> StateMachinePhase[str] | None:
        return Terminus(f"without: {error.message}")


def test_a_phase_may_know_another_way_as_long_as_no_row_was_given() -> None:
    start = PartialResult(Detour("t", 3))
    running: StateMachine[str] = StateMachine(start, Failing(["at once"]))
    assert running.run_to_terminal() == "without: no engine today"
    running = StateMachine(start, Failing(["in the middle"]))
    with pytest.raises(PhaseError, match="lost in the middle"):
        running.run_to_terminal()
    assert running.run_to_terminal() == "3 rows"


@dataclass(frozen=True)
class Resuming(Results):
    """Goes on behind the last number that was handed out."""

    start: int = 0

    def plan(self) -> Plan:
        return values([{"n": n, "text": str(n)} for n in range(self.start, self.count)])

    @property
    def remembered(self) -> tuple[str, ...]:
        return ("n",)

    def resume(
        self, error: MillpondError, handed: Sequence[pa.RecordBatch]
    ) -> StateMachinePhase[str] | None:
        assert all(batch.schema.names == ["n"] for batch in handed)
        assert error.message == "lost in the middle"
        return PartialResult(Resuming(self.table, self.count, numbers(handed)[-1] + 1))


def test_a_phase_may_go_on_with_what_was_not_handed_out() -> None:
    start = PartialResult(Resuming("t", 3))
    running: StateMachine[str] = StateMachine(start, Failing(["in the middle"] * 2))
    assert numbers(running) == [0, 1, 2]
    assert running.repeated_rows == 0
    assert [step.phase for step in running.trace] == ["Resuming"] * 3
    running = StateMachine(start, Failing(["at once"]))
    with pytest.raises(PhaseError, match="no engine today"):
        running.run_to_terminal()


@dataclass(frozen=True)
class Checking(Results):
    def check(self, batch: pa.RecordBatch) -> None:
        if 2 in numbers([batch]):
            raise MachineStateError("there is no 2", table=self.table)


def test_rows_that_can_not_be_are_not_handed_out() -> None:
    running: StateMachine[str] = StateMachine(PartialResult(Checking("t", 2)), "arrow")
    assert numbers(running) == [0, 1]
    running = StateMachine(PartialResult(Checking("t", 3)), "arrow")
    with pytest.raises(MachineStateError, match="there is no 2"):
        next(iter(running))
    assert running.phase == "Checking"


def test_explain_shows_phases_kinds_and_plans() -> None:
    running = machine()
    running.run_to_terminal()
    text = running.explain()
    assert "Settings (consume)" in text
    assert "Results (partial result, parallelizable)" in text


def test_the_async_driver_gives_the_same() -> None:
    async def run() -> tuple[list[int], str]:
        driver = AsyncStateMachine(machine())
        found = [n async for batch in driver for n in batch.column("n").to_pylist()]
        return found, driver.into_terminal()

    assert asyncio.run(run()) == ([0, 1, 2], "3 rows")
    collected = asyncio.run(AsyncStateMachine(machine()).collect())
    assert collected[1] == "3 rows"
    assert asyncio.run(AsyncStateMachine(machine()).run_to_terminal()) == "3 rows"


def test_the_async_driver_can_be_left_early() -> None:
    async def run() -> str | None:
        running = machine()
        async for _ in AsyncStateMachine(running):
            break
        return running.phase

    assert asyncio.run(run()) == "Results"
