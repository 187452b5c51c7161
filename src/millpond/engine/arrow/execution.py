"""A run: one loop that moves batches between operators, and the iterator that users hold."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import pyarrow as pa

from millpond.base.errors import EngineError, RunCancelledError
from millpond.engine.arrow.context import Context, Seen
from millpond.engine.arrow.operator import Operator
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.executor import Observation
from millpond.plan.tree import topological

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from types import TracebackType

    from millpond.plan.counters import Counters
    from millpond.plan.node import Plan


def drive(root: Operator, context: Context) -> Iterator[pa.RecordBatch]:
    """The batches of an operator. It and those below it are closed at the end, come what may."""
    stack, value = [root], None
    try:
        while stack:
            operator = stack[-1]
            given = _advance(operator, value, context)
            value = None
            if given is None:
                operator.close()
                stack.pop()
            elif isinstance(given, Operator):
                if not given.finished:
                    stack.append(given)
            elif given.num_rows:
                stack.pop()
                if stack:
                    value = given
                else:
                    yield given
                    stack.append(root)
    finally:
        root.close()


def _advance(
    operator: Operator, value: pa.RecordBatch | None, context: Context
) -> Operator | pa.RecordBatch | None:
    """What the operator asks for or gives next; None when it has come to its end."""
    if context.is_cancelled:
        raise RunCancelledError("arrow")
    started = perf_counter()
    if operator.steps is None:
        operator.steps = operator.run()
    given = next(operator.steps, None) if value is None else _send(operator, value)
    if operator.node is not None:
        seen = context.seen.setdefault(operator.node, Seen())
        seen.seconds += perf_counter() - started
        if given is not None and not isinstance(given, Operator) and given.num_rows:
            seen.rows += given.num_rows
            seen.batches += 1
    return given


def _send(operator: Operator, value: pa.RecordBatch) -> Operator | pa.RecordBatch | None:
    assert operator.steps is not None
    try:
        return operator.steps.send(value)
    except StopIteration:
        return None


class ArrowExecution:
    """A run of a plan: iterate for batches of at most `batch_rows` rows, close at any time."""

    def __init__(self, plan: Plan, root: Operator, context: Context) -> None:
        self._plan = plan
        self._context = context
        self._schema = to_arrow_schema(plan.schema)
        self._batches = self._emit(root)

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        return self._schema

    @property
    def counters(self) -> Counters:
        """What this run has done so far."""
        return self._context.counters

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def __enter__(self) -> ArrowExecution:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def cancel(self) -> None:
        """Stop before the next step, from any thread, with a `RunCancelledError` for the reader."""
        self._context.is_cancelled = True

    def close(self) -> None:
        """Stop and release everything; closing twice is harmless."""
        self._batches.close()

    def observations(self) -> tuple[Observation, ...]:
        """What was seen of each plan node so far. Seconds are a node's own, not its inputs'."""
        found = []
        for number, node in enumerate(topological(self._plan)):
            seen = self._context.seen.get(number)
            if seen is not None:
                found.append(Observation(node.kind, number, seen.rows, seen.batches, seen.seconds))
        return tuple(found)

    def _emit(self, root: Operator) -> Generator[pa.RecordBatch, None, None]:
        rows, counters = self._context.batch_rows, self._context.counters
        try:
            for batch in drive(root, self._context):
                for start in range(0, batch.num_rows, rows):
                    part = batch if batch.num_rows <= rows else batch.slice(start, rows)
                    counters.add("rows_emitted", part.num_rows)
                    yield part
        except pa.ArrowException as error:
            raise _failed(error) from error
        finally:
            root.close()
            self._context.close()


def _failed(error: pa.ArrowException) -> EngineError:
    """What pyarrow itself can't do; mostly it is too much text for one array."""
    return EngineError(
        f"the arrow engine can't go on: {error}",
        engine="arrow",
        hint="a column may have more than 2 GB of text in rows that are needed at once; "
        "run it with engine='spark', or on fewer rows",
    )
