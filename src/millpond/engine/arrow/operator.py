"""What every step of a run is: a coroutine that asks its inputs for batches and gives its own.

`run` yields an input to be sent that input's next batch (None after the last), and yields a batch
to give it. `execution.drive` moves batches between operators in one loop, so that a chain of
10,000 operators needs no deep stack, and measures each of them on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Generator

    import pyarrow as pa

Steps: TypeAlias = "Generator[Operator | pa.RecordBatch, pa.RecordBatch | None, None]"


class Operator:
    """A step of a run over the steps below it. `node` is the number of the plan node it runs."""

    name = ""

    def __init__(self, *inputs: Operator) -> None:
        self.inputs = inputs
        self.node: int | None = None
        self.steps: Steps | None = None
        self.finished = False

    def run(self) -> Steps:
        """Begin: a coroutine over the inputs' batches; empty ones are never sent nor given on."""
        raise NotImplementedError

    def describe(self) -> str:
        """How this step works, on one line, for explain."""
        return type(self).__name__

    def close(self) -> None:
        """Stop here and below; what was opened is released. Closing twice is harmless."""
        stack = [self]
        while stack:
            operator = stack.pop()
            if not operator.finished:
                operator.finished = True
                if operator.steps is not None:
                    operator.steps.close()
                stack.extend(operator.inputs)


def gather(source: Operator) -> Generator[Operator, Any, list[pa.RecordBatch]]:
    """All batches of an input: `batches = yield from gather(source)`."""
    batches = []
    while (batch := (yield source)) is not None:
        batches.append(batch)
    return batches
