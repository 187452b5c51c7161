"""`Parts`: an outcome that an engine writes into files by itself, one for each part of time.

An engine that can has `execute_into(plan, parts)`. It gives a run whose rows name the files, or
None where it can't: then the rows come to whoever wants them written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa

    from millpond.plan.executor import Execution
    from millpond.plan.node import Plan


@dataclass(frozen=True, slots=True)
class Parts:
    """Where time is cut, in microseconds, and where files are put.

    A part begins at a multiple of `wide`; from `since` on, at one of `narrow`. Rows without a time
    are in the part that begins at `last`.
    """

    time: str
    wide: int
    narrow: int
    since: int
    last: int
    rows: int
    """About how many rows are read."""
    directory: str

    @staticmethod
    def schema() -> pa.Schema:
        """What a run tells: when a part begins, and its Parquet file; rows are ordered by time."""
        import pyarrow as pa

        return pa.schema({"start": pa.int64(), "file": pa.string()})


@runtime_checkable
class Writer(Protocol):
    """An engine that writes files by itself."""

    def execute_into(self, plan: Plan, parts: Parts) -> Execution | None:
        """Write the rows of a plan; None if it can't."""
