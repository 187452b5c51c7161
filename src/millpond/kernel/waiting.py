"""`AsyncStateMachine`: a state machine for programs that wait for many things at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pyarrow as pa

    from millpond.kernel.machine import StateMachine

T = TypeVar("T")


class AsyncStateMachine(Generic[T]):
    """The same phases for `async for`; engines run in a thread, one step at a time."""

    def __init__(self, machine: StateMachine[T]) -> None:
        self._machine = machine

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        """The partial results as they come."""
        batches = iter(self._machine)
        end = object()
        try:
            while True:
                batch = await asyncio.to_thread(next, batches, end)
                if batch is end:
                    return
                yield cast("pa.RecordBatch", batch)
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                await asyncio.to_thread(close)

    async def run_to_terminal(self) -> T:
        """Run all phases, drop the partial results, give the finished value."""
        return await asyncio.to_thread(self._machine.run_to_terminal)

    async def collect(self) -> tuple[list[pa.RecordBatch], T]:
        """All partial results and the finished value."""
        return await asyncio.to_thread(self._machine.collect)

    def into_terminal(self) -> T:
        """The finished value; too early is an error."""
        return self._machine.into_terminal()
