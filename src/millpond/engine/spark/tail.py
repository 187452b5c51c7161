"""The end of a plan that runs in this process: row filters whose state the caller can look at.

A row filter at the root of an ordered run, with only projections, filters, parsed texts and heads
above it, sees the ordered stream here. What stands above it is computed by Spark, as further
columns of the same rows, when it can't fail: a row that the filter drops must not cause an error.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millpond.engine.spark.batches import conform, keep
from millpond.engine.spark.expressions import Expressions
from millpond.engine.spark.expressions.json import parse_json
from millpond.engine.spark.frame import Frame
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.order import Head
from millpond.plan.raising import can_raise
from millpond.plan.rows import Filter, FilterOrdered, ParseJson, Project
from millpond.plan.types import Field, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from millpond.engine.spark.context import Context
    from millpond.plan.bound import BoundExpr
    from millpond.plan.node import Plan
    from millpond.plan.python import RowFilter, RowFilterRun
    from millpond.plan.types import DataType


@dataclass(frozen=True, slots=True)
class Keep:
    """A row filter, the stream's columns that it looks at, and their schema for it."""

    row_filter: RowFilter
    columns: tuple[str, ...]
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Mask:
    """A column that says which rows to keep."""

    column: str


@dataclass(frozen=True, slots=True)
class First:
    """Only this many rows."""

    n: int


Step: TypeAlias = "Keep | Mask | First"


@dataclass(frozen=True, slots=True)
class Tail:
    """What is left to do with the stream, and which of its columns are the result."""

    steps: tuple[Step, ...]
    output: tuple[str, ...]
    schema: pa.Schema


def split(plan: Plan) -> tuple[Plan, list[Plan]] | None:
    """The plan below the lowest row filter at the root, and the nodes above it, lowest first."""
    above: list[Plan] = []
    found = 0
    node = plan
    while isinstance(node, Project | Filter | Head | FilterOrdered | ParseJson):
        above.append(node)
        if isinstance(node, FilterOrdered):
            found = len(above)
        node = node.input
    if not found:
        return None
    nodes = above[:found][::-1]
    if any(can_raise(expr) for node in nodes for expr in _expressions(node)):
        return None
    lowest = nodes[0]
    assert isinstance(lowest, FilterOrdered)
    return lowest.input, nodes


def _expressions(node: Plan) -> tuple[BoundExpr, ...]:
    if isinstance(node, Filter):
        return (node.predicate,)
    return tuple(c.expr for c in node.columns) if isinstance(node, Project) else ()


@dataclass(slots=True)
class _Stream:
    """The stream while it is put together: what Spark computes, what this process does."""

    frame: Frame
    context: Context
    names: dict[str, str]
    """The current node's columns, by name: where they stand in the stream."""
    steps: list[Step] = field(default_factory=list)
    used: dict[str, Field] = field(default_factory=dict)

    def add(self, exprs: Sequence[BoundExpr], schema: Struct) -> list[str]:
        """Further columns of the stream."""
        over = Expressions(self.context.api, schema, self._resolve)
        return self.add_columns([(over.column(expr), expr.type) for expr in exprs])

    def add_columns(self, columns: Sequence[tuple[Column, DataType]]) -> list[str]:
        """Further columns of the stream, as Spark has them; one step of its plan for all."""
        added = {self.context.hidden(): column for column in columns}
        df = self.frame.df.withColumns({name: column for name, (column, _) in added.items()})
        fields = (Field(name, type_) for name, (_, type_) in added.items())
        extended = Struct((*self.frame.schema.fields, *fields))
        self.frame = Frame(df, extended, self.frame.natural, self.frame.keys)
        return list(added)

    def use(self, column: str) -> str:
        """Note that the stream has to bring this column."""
        self.used[column] = self.frame.schema.field(column)
        return column

    def _resolve(self, name: str) -> Column:
        return self.context.column(self.names[name])


def build(frame: Frame, nodes: list[Plan], context: Context) -> tuple[DataFrame, Tail]:
    """The DataFrame to stream in order, and what to do with its batches."""
    stream = _Stream(frame, context, {name: name for name in frame.schema.names})
    for node in nodes:
        _add(node, stream)
    last = nodes[-1].schema
    output = tuple(stream.use(stream.names[name]) for name in last.names)
    keys = stream.frame.keys
    columns = context.columns((*stream.used, *keys))
    narrowed = Struct(tuple(stream.used.values()))
    final = Frame(stream.frame.df.select(*columns), narrowed, stream.frame.natural, keys)
    return final.in_order(context), Tail(tuple(stream.steps), output, to_arrow_schema(last))


def _add(node: Plan, stream: _Stream) -> None:
    if isinstance(node, FilterOrdered):
        columns = tuple(stream.use(stream.names[name]) for name in node.row_filter.columns)
        schema = to_arrow_schema(node.schema.select(node.row_filter.columns))
        stream.steps.append(Keep(node.row_filter, columns, schema))
    elif isinstance(node, Filter):
        (column,) = stream.add([node.predicate], node.schema)
        stream.steps.append(Mask(stream.use(column)))
    elif isinstance(node, Head):
        stream.steps.append(First(node.n))
    elif isinstance(node, ParseJson):
        # Text that can't be read gives nulls: this does not fail either.
        text = stream.context.column(stream.names[node.column])
        parsed = parse_json(text, node.parsed, stream.context.api)
        (column,) = stream.add_columns([(parsed, node.parsed)])
        stream.names = {**stream.names, node.output: column}
    else:
        assert isinstance(node, Project)
        added = stream.add([c.expr for c in node.columns], node.input.schema)
        stream.names = dict(zip(node.schema.names, added, strict=True))


def run(batches: Iterator[pa.RecordBatch], tail: Tail) -> Iterator[pa.RecordBatch]:
    """The result's batches; who has seen its input to the end is told so by `finish`.

    A head that is full ends the input of what stands above it; what stands below it is left in the
    middle, or was never begun.
    """
    state = _State({at: step.n for at, step in enumerate(tail.steps) if isinstance(step, First)})
    for at, step in enumerate(tail.steps):
        if isinstance(step, Keep) and at > state.full:
            state.runs[at] = step.row_filter.open()
    # The error of a filter holds this frame, and by that the stream: who keeps it keeps no more.
    with contextlib.closing(batches):  # type: ignore[type-var]
        while state.full < 0 and (batch := next(batches, None)) is not None:
            made = _pass(batch, tail.steps, state)
            if made.num_rows:
                yield conform(made.select(list(tail.output)), tail.schema)
    for at, row_filter in state.runs.items():
        if at > state.full:
            row_filter.finish()


@dataclass(slots=True)
class _State:
    """How far the steps are, each by its place."""

    left: dict[int, int]
    """How many rows the heads still take."""
    runs: dict[int, RowFilterRun] = field(default_factory=dict)

    @property
    def full(self) -> int:
        """The last head that takes no more rows; -1 if there is none."""
        return max((at for at, rows in self.left.items() if not rows), default=-1)


def _pass(batch: pa.RecordBatch, steps: tuple[Step, ...], state: _State) -> pa.RecordBatch:
    """What comes out of the steps; filters are not asked about no rows."""
    for at, step in enumerate(steps):
        if not batch.num_rows:
            break
        if isinstance(step, Keep):
            seen = conform(batch.select(list(step.columns)), step.schema)
            batch = keep(batch, state.runs[at].apply(seen), by=step.row_filter.name)
        elif isinstance(step, Mask):
            batch = batch.filter(batch.column(step.column))
        else:
            batch = batch.slice(0, state.left[at])
            state.left[at] -= batch.num_rows
    return batch
