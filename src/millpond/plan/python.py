"""What a plan may hold that is Python by nature: row filters and stateful functions.

Both are *definitions*: immutable, with a `name` and a JSON-able `config` that rebuild them on the
other side of a wire (entry points `millpond.row_filters` and `millpond.stateful_functions`). State
lives in what `open` and `create_instance` return, one for each run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from millpond.plan.types import DataType


class RowFilterRun(Protocol):
    """One run of a row filter: it sees every row once, in order."""

    def apply(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Which rows of this batch (of the filter's columns) to keep; no nulls."""

    def finish(self) -> None:
        """Called once, after the last batch, when the input was read to its end."""


@runtime_checkable
class RowFilter(Protocol):
    """A stateful filter's definition."""

    @property
    def name(self) -> str:
        """Its registered name."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it looks at, in the order in which batches bring them."""

    @property
    def config(self) -> Mapping[str, Any]:
        """What rebuilds it: keyword arguments of the registered class, plain JSON data."""

    def open(self) -> RowFilterRun:
        """Begin a run with fresh state."""


class StatefulInstance(Protocol):
    """The state of one call of a stateful function, for one partition key."""

    def eval(self, args: tuple[Any, ...], *, accept: bool) -> Any:
        """The result for the next row; the state may change only if `accept`."""

    def snapshot(self) -> Any:
        """The state as plain JSON data."""

    def restore(self, state: Any) -> None:
        """Go on from a snapshot."""


@runtime_checkable
class StatefulDefinition(Protocol):
    """A stateful function's definition."""

    @property
    def name(self) -> str:
        """Its registered name."""

    @property
    def config(self) -> Mapping[str, Any]:
        """What rebuilds it: keyword arguments of the registered class, plain JSON data."""

    def return_type(self, input_types: tuple[DataType, ...]) -> DataType:
        """The result's type for these arguments, or a TypeMismatchError."""

    def create_instance(self) -> StatefulInstance:
        """Fresh state."""
