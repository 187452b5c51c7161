"""Operators that need one batch at a time: memory, filters, projections, unions, heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from millpond.base.errors import EvaluationError
from millpond.engine.arrow.eval import evaluate
from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.source.batch import batch_of
from millpond.engine.arrow.source.files import ENGINE
from millpond.engine.arrow.source.spec import kept_rows, project, take
from millpond.plan.arrow import to_arrow_schema
from millpond.plan.bound import BoundParseJson, BoundPath
from millpond.plan.paths import Name
from millpond.plan.types import STRING

if TYPE_CHECKING:
    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps
    from millpond.plan import rows as r
    from millpond.plan.bound import BoundExpr
    from millpond.plan.types import Struct


class Memory(Operator):
    """Rows that are in memory."""

    def __init__(self, table: pa.Table, context: Context) -> None:
        super().__init__()
        self.table = table
        self.context = context

    def run(self) -> Steps:
        """The table in batches."""
        if not self.table.num_columns:
            yield batch_of([], _no_columns(), self.table.num_rows)
            return
        yield from self.table.to_batches(max_chunksize=self.context.batch_rows)

    def describe(self) -> str:
        """How many rows."""
        return f"Memory [{self.table.num_rows} rows]"


class Keep(Operator):
    """The rows for which a predicate is true."""

    def __init__(self, source: Operator, predicate: BoundExpr) -> None:
        super().__init__(source)
        self.predicate = predicate

    def run(self) -> Steps:
        """Batch by batch."""
        while (batch := (yield self.inputs[0])) is not None:
            kept = kept_rows(self.predicate, batch)
            if kept is None:
                yield batch
            elif len(kept):
                yield take(batch, kept)

    def describe(self) -> str:
        """The predicate."""
        return f"Keep {self.predicate}"


class Compute(Operator):
    """Each row's columns computed anew."""

    def __init__(self, source: Operator, node: r.Project) -> None:
        super().__init__(source)
        self.columns = node.columns
        self.schema = node.schema

    def run(self) -> Steps:
        """Batch by batch."""
        while (batch := (yield self.inputs[0])) is not None:
            yield project(self.columns, batch, self.schema)

    def describe(self) -> str:
        """The columns."""
        return f"Compute {', '.join(map(str, self.columns))}"


class Parse(Operator):
    """A column of JSON text read into a struct, as one more column."""

    def __init__(self, source: Operator, node: r.ParseJson) -> None:
        super().__init__(source)
        self.expr = BoundParseJson(BoundPath((Name(node.column),), STRING), node.parsed)
        self.output = node.output
        self.schema = node.schema

    def run(self) -> Steps:
        """Batch by batch."""
        while (batch := (yield self.inputs[0])) is not None:
            arrays = [*batch.columns, evaluate(self.expr, batch)]
            yield batch_of(arrays, self.schema, batch.num_rows)

    def describe(self) -> str:
        """The column and what it is read as."""
        return f"Parse {self.output} := {self.expr}"


class KeepOrdered(Operator):
    """The rows that a stateful row filter keeps; it sees all rows, in order."""

    def __init__(self, source: Operator, node: r.FilterOrdered) -> None:
        super().__init__(source)
        self.row_filter = node.row_filter

    def run(self) -> Steps:
        """Batch by batch; the filter is told of the end only if it has seen all."""
        names = list(self.row_filter.columns)
        run = self.row_filter.open()
        while (batch := (yield self.inputs[0])) is not None:
            mask = run.apply(batch.select(names))
            if len(mask) != batch.num_rows or mask.null_count:
                raise EvaluationError(
                    f"the row filter {self.row_filter.name} gave {len(mask)} answers, "
                    f"{mask.null_count} of them null, for {batch.num_rows} rows",
                    engine=ENGINE,
                )
            kept = pc.indices_nonzero(mask)
            if len(kept) == batch.num_rows:
                yield batch
            elif len(kept):
                yield batch.take(kept)
        run.finish()

    def describe(self) -> str:
        """The filter's name and what it looks at."""
        return f"KeepOrdered {self.row_filter.name}({', '.join(self.row_filter.columns)})"


class Chain(Operator):
    """All rows of the first input, then all of the second, and so on."""

    def __init__(self, sources: list[Operator], schema: Struct) -> None:
        super().__init__(*sources)
        self.schema = schema

    def run(self) -> Steps:
        """Input by input; fields that one input never leaves null may be null in another."""
        target = to_arrow_schema(self.schema)
        for source in self.inputs:
            while (batch := (yield source)) is not None:
                yield batch if batch.schema.equals(target) else retyped(batch, self.schema)

    def describe(self) -> str:
        """How many inputs."""
        return f"Chain [{len(self.inputs)} inputs]"


class First(Operator):
    """The first rows; then the input is closed."""

    def __init__(self, source: Operator, count: int) -> None:
        super().__init__(source)
        self.count = count

    def run(self) -> Steps:
        """Until there are enough."""
        left = self.count
        while left and (batch := (yield self.inputs[0])) is not None:
            part = batch if batch.num_rows <= left else batch.slice(0, left)
            left -= part.num_rows
            if not left:
                self.inputs[0].close()
            yield part

    def describe(self) -> str:
        """How many."""
        return f"First {self.count}"


def retyped(batch: pa.RecordBatch, schema: Struct) -> pa.RecordBatch:
    """The same columns under a schema that differs only in what may be null."""
    return batch_of(list(batch.columns), schema, batch.num_rows)


def _no_columns() -> Struct:
    from millpond.plan.types import Struct

    return Struct()
