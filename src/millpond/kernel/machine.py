"""State machines: a chain of phases, each of which hands out a plan that someone else executes.

A phase is frozen. It says what comes next when its plan's rows are there (`Consume`), when they
have streamed past (`PartialResult`), and in the end there is a value (`Terminus`).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from millpond.base.errors import DeltaError, MachineStateError, MillpondError, PhaseError
from millpond.plan.run import execute

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from millpond.plan.executor import Execution, Executor
    from millpond.plan.node import Plan

T = TypeVar("T")


class Phase(Protocol):
    """One step: what is to be executed, and what follows."""

    @property
    def name(self) -> str:
        """For traces and errors."""

    @property
    def table(self) -> str:
        """The table's location, for errors."""

    @property
    def is_parallelizable(self) -> bool:
        """Whether the plan's rows may come in any order, from many tasks."""

    def plan(self) -> Plan:
        """What is to be executed."""

    def failed(self, error: MillpondError) -> MillpondError:
        """The error to raise when the plan could not be executed."""

    def instead(self, error: MillpondError) -> StateMachinePhase[Any] | None:
        """What follows all the same when the plan could not be executed; None: the error.

        It is asked as long as no rows were handed out.
        """


class ConsumePhase(Phase, Protocol):
    """Its plan's rows are configuration: they are gathered and passed on."""

    def next(self, rows: pa.Table) -> StateMachinePhase[Any]:
        """What follows, given all rows of the plan."""


class PartialPhase(Phase, Protocol):
    """Its plan's rows are results: they stream past the phase to whoever asked."""

    @property
    def remembered(self) -> tuple[str, ...]:
        """Columns of rows that were handed out, which `resume` has to know."""

    def check(self, batch: pa.RecordBatch) -> None:
        """Refuse rows that can't be, before they are handed out."""

    def resume(
        self, error: MillpondError, handed: Sequence[pa.RecordBatch]
    ) -> StateMachinePhase[Any] | None:
        """What follows a failure after rows were handed out, and gives none of them again.

        Of these rows the remembered columns are there. None: the error.
        """

    def next(self) -> StateMachinePhase[Any]:
        """What follows, once all rows have streamed past."""


@dataclass(frozen=True, slots=True)
class Terminus(Generic[T]):
    """The finished value."""

    value: T


@dataclass(frozen=True, slots=True)
class PartialResult:
    """A phase whose rows are results."""

    phase: PartialPhase


@dataclass(frozen=True, slots=True)
class Consume:
    """A phase whose rows are for the machine alone."""

    phase: ConsumePhase


StateMachinePhase: TypeAlias = Terminus[T] | PartialResult | Consume


@dataclass(frozen=True, slots=True)
class Step:
    """What a machine did: a phase, its kind, and the plan that was executed."""

    phase: str
    kind: str
    parallelizable: bool
    plan: Plan

    def __str__(self) -> str:
        how = ", parallelizable" if self.parallelizable else ""
        lines = "\n".join(f"  {line}" for line in str(self.plan).splitlines())
        return f"{self.phase} ({self.kind}{how})\n{lines}"


class StateMachine(Generic[T]):
    """Drives phases on an engine: iterate for partial results, then ask for the terminal value.

    When an engine fails, the phase is as it was: iterate (or run) again to retry it. Rows of that
    phase that were handed out before the failure come again; `repeated_rows` says how many.
    """

    def __init__(
        self, start: StateMachinePhase[T], executor: str | Executor = "auto", *, table: str = ""
    ) -> None:
        self._state: StateMachinePhase[T] = start
        self._executor = executor
        self._table = table
        self._running = False
        self.repeated_rows = 0
        self.trace: list[Step] = []

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The partial results, phase by phase, as they come."""
        if self._running:
            raise MachineStateError(
                "this machine is being iterated already",
                table=self._table,
                hint="one consumer at a time",
            )
        self._running = True
        try:
            while not isinstance(self._state, Terminus):
                yield from self._step(self._state)
        finally:
            self._running = False

    def _step(self, state: PartialResult | Consume) -> Iterator[pa.RecordBatch]:
        self.repeated_rows = 0
        handed: list[pa.RecordBatch] = []
        try:
            with contextlib.closing(self._begin(state)) as run:
                if isinstance(state, Consume):
                    following = state.phase.next(_table(run))
                else:
                    yield from self._hand_out(run, state.phase, handed)
                    following = state.phase.next()
        except MillpondError as error:
            otherwise = self._otherwise(state, error, handed)
            if otherwise is None:
                raise self._failure(state, error) from error
            following = otherwise
        self.repeated_rows = 0
        self._state = following

    def _hand_out(
        self, run: Execution, phase: PartialPhase, handed: list[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        remembered = list(phase.remembered)
        for batch in run:
            phase.check(batch)
            self.repeated_rows += batch.num_rows
            if remembered:
                handed.append(batch.select(remembered))
            yield batch

    def _otherwise(
        self,
        state: PartialResult | Consume,
        error: MillpondError,
        handed: Sequence[pa.RecordBatch],
    ) -> StateMachinePhase[T] | None:
        """Another way, if a phase knows one; rows that were handed out can't be taken back."""
        if not self.repeated_rows:
            return state.phase.instead(error)
        assert isinstance(state, PartialResult)
        return state.phase.resume(error, handed)

    def _begin(self, state: PartialResult | Consume) -> Execution:
        phase = state.phase
        plan = phase.plan()
        kind = "consume" if isinstance(state, Consume) else "partial result"
        self.trace.append(Step(phase.name, kind, phase.is_parallelizable, plan))
        return execute(plan, engine=self._executor, ordered=not phase.is_parallelizable)

    def _failure(self, state: PartialResult | Consume, error: MillpondError) -> MillpondError:
        """What the kernel itself found wrong is told as it is; an engine's failure by its phase."""
        if isinstance(error, DeltaError):
            return error
        told = state.phase.failed(error)
        if told is not error:
            return told
        return PhaseError(
            f"{state.phase.name} of {state.phase.table} failed: {error.message}",
            table=state.phase.table,
            phase=state.phase.name,
            plan=str(state.phase.plan()),
            hint=error.hint,
        )

    @property
    def phase(self) -> str | None:
        """The name of the phase that runs next; None at the end."""
        return None if isinstance(self._state, Terminus) else self._state.phase.name

    def into_terminal(self) -> T:
        """The finished value; too early is an error."""
        if not isinstance(self._state, Terminus):
            raise MachineStateError(
                f"the machine is still before {self._state.phase.name}",
                table=self._table,
                hint="iterate to the end first, or call run_to_terminal()",
            )
        return self._state.value

    def run_to_terminal(self) -> T:
        """Run all phases, drop the partial results, give the finished value."""
        for _ in self:
            pass
        return self.into_terminal()

    def collect(self) -> tuple[list[pa.RecordBatch], T]:
        """All partial results and the finished value."""
        batches = list(self)
        return batches, self.into_terminal()

    def explain(self) -> str:
        """The phases that have run so far: kind, whether in parallel, and the plan of each."""
        return "\n".join(map(str, self.trace))


def _table(run: Execution) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches(list(run), schema=run.schema)
