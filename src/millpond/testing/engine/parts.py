"""Python parts for tests of `FilterOrdered` and `StatefulFunction`: small, deterministic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millpond.base.errors import TypeMismatchError
from millpond.plan.plugins import ROW_FILTERS, STATEFUL_FUNCTIONS
from millpond.plan.types import LONG, DataType, is_integral

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class FirstOfKey:
    """Keeps the first row of each key, as a log replay keeps the newest action of a file."""

    key: str
    name: str = "testing.first_of_key"

    @property
    def columns(self) -> tuple[str, ...]:
        """The key alone."""
        return (self.key,)

    @property
    def config(self) -> dict[str, Any]:
        """The key."""
        return {"key": self.key}

    def open(self) -> FirstOfKeyRun:
        """Begin with no key seen."""
        return FirstOfKeyRun()


class FirstOfKeyRun:
    """The keys seen so far."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()
        self.finished = False

    def apply(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """True for keys that come for the first time."""
        import pyarrow as pa

        keep = []
        for value in batch.column(0).to_pylist():
            keep.append(value not in self.seen)
            self.seen.add(value)
        return pa.array(keep, pa.bool_())

    def finish(self) -> None:
        """Note that the end was reached."""
        self.finished = True


@dataclass(frozen=True, slots=True)
class RunningSum:
    """The sum of the accepted values so far, this row included; null counts as nothing."""

    start: int = 0
    name: str = "testing.running_sum"

    @property
    def config(self) -> dict[str, Any]:
        """Where the sum starts."""
        return {"start": self.start}

    def return_type(self, input_types: tuple[DataType, ...]) -> DataType:
        """A long for one whole number."""
        if len(input_types) != 1 or not is_integral(input_types[0]):
            raise TypeMismatchError(f"running_sum takes one whole number, not {input_types}")
        return LONG

    def create_instance(self) -> RunningSumInstance:
        """Begin at the start value."""
        return RunningSumInstance(self.start)


class RunningSumInstance:
    """The sum so far."""

    def __init__(self, total: int) -> None:
        self.total = total

    def eval(self, args: tuple[Any, ...], *, accept: bool) -> Any:
        """Add the value if the row is accepted, and give the sum."""
        if accept and args[0] is not None:
            self.total += args[0]
        return self.total

    def snapshot(self) -> Any:
        """The sum."""
        return self.total

    def restore(self, state: Any) -> None:
        """Go on from a sum."""
        self.total = state


def register() -> None:
    """Make these parts known, so that plans that hold them can be read back."""
    if "testing.first_of_key" not in ROW_FILTERS.names():
        ROW_FILTERS.register("testing.first_of_key", FirstOfKey)
    if "testing.running_sum" not in STATEFUL_FUNCTIONS.names():
        STATEFUL_FUNCTIONS.register("testing.running_sum", RunningSum)
