"""A scan with the filters and the projection right above it, as one unit of work.

Decoding is late: the columns of the first condition are read, then those of the next for the rows
that are left, and what is given only of row groups in which some row is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval import evaluate
from millpond.engine.arrow.source.batch import batch_of
from millpond.engine.arrow.source.choice import Picked
from millpond.engine.arrow.source.longtext import LongTextError, bisected
from millpond.engine.arrow.source.need import narrow
from millpond.engine.arrow.source.text import TextCondition, text_condition
from millpond.plan.bound import conjuncts, row_paths
from millpond.plan.paths import Name
from millpond.plan.sources import DynamicScan, Scan
from millpond.plan.types import Field, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from millpond.engine.arrow.source.rowgroup import RowGroup
    from millpond.plan.bound import BoundExpr, BoundNamed
    from millpond.plan.sources import CsvOptions, Format, OnError


@dataclass(frozen=True)
class Condition:
    """A part of a predicate over just the columns it looks at; `node` is given once it is met."""

    expr: BoundExpr
    need: Struct
    node: int | None = None
    text: TextCondition | None = None

    def kept(self, group: RowGroup, rows: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """Which of these rows of a row group meet it, counted among them; None: all."""
        if self.text is not None:
            in_lists = self.text.in_lists
            texts = group.texts(self.text.steps, self.need, rows, in_lists=in_lists)
            if texts is not None:
                return self.text.kept(texts, rows)
        try:
            return kept_rows(self.expr, group.columns(self.need, rows))
        except LongTextError:
            return self._kept_of_halves(group, np.arange(group.rows) if rows is None else rows)

    def _kept_of_halves(self, group: RowGroup, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        def kept(some: NDArray[np.int64]) -> NDArray[np.int64] | None:
            return kept_rows(self.expr, group.columns(self.need, some))

        found, start = [], 0
        for some, places in bisected(rows, kept):
            found.append(start + (np.arange(len(some)) if places is None else places))
            start += len(some)
        return np.concatenate(found)


@dataclass(frozen=True)
class ScanSpec:
    """What is read of each file, which rows are kept, and what is computed of them.

    Conditions and projection are over pruned columns, as `need.narrow` makes them.
    """

    format: Format
    columns: Struct
    constants: tuple[str, ...]
    csv: CsvOptions | None
    conditions: tuple[Condition, ...]
    project: tuple[BoundNamed, ...] | None
    result_need: Struct
    """The columns that what is given is computed from."""
    output: Struct
    scan_node: int | None
    strict: bool = False
    """Whether values that would only be converted are errors, too: see `Scan`."""
    on_error: OnError = "error"
    texts: frozenset[str] = frozenset()
    """Columns that whoever takes the rows also takes as dictionaries; only without a projection."""

    @cached_property
    def predicates(self) -> tuple[BoundExpr, ...]:
        """The conditions' expressions."""
        return tuple(condition.expr for condition in self.conditions)

    @cached_property
    def constant_predicates(self) -> tuple[BoundExpr, ...]:
        """Those that a file's constants say something about."""
        return tuple(expr for expr in self.predicates if self._tells(expr))

    def _tells(self, expr: BoundExpr) -> bool:
        firsts = [path.steps[0] for path in row_paths(expr)]
        return not firsts or any(
            isinstance(step, Name) and step.name in self.constants for step in firsts
        )

    def survivors(
        self,
        group: RowGroup,
        rows: NDArray[np.int64] | None,
        note: Callable[[int | None, int], None],
    ) -> NDArray[np.int64] | None:
        """Which of these rows of a row group meet all conditions; None stands for all rows.

        How many met the conditions of a node is noted, as by `Context.note`.
        """
        for condition in self.conditions:
            kept = condition.kept(group, rows)
            if kept is not None:
                rows = kept if rows is None else rows[kept]
            count = group.rows if rows is None else len(rows)
            if not count:
                break
            note(condition.node, count)
        return rows

    def result(self, group: RowGroup, rows: NDArray[np.int64] | None) -> pa.RecordBatch:
        """What is given of these rows of a row group."""
        return self.compute(group.columns(self.result_need, rows, self.texts))

    def results(
        self,
        group: RowGroup,
        rows: NDArray[np.int64] | None,
        gone: NDArray[np.int64] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The same in one batch or more, for who asks for nothing else of the row group.

        Instead of rows, those can be given that are gone: then it is all others.
        """
        for batch in group.parts(self.result_need, rows, self.texts, gone=gone):
            yield self.compute(batch)

    def compute(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The projection of rows that are kept."""
        if self.project is None:
            return batch
        return project(self.project, batch, self.output)


def kept_rows(predicate: BoundExpr, batch: pa.RecordBatch) -> NDArray[np.int64] | None:
    """The positions of the rows for which a predicate is true; None stands for all rows."""
    # It passes over nulls by itself, so they need not be filled first.
    kept = pc.indices_nonzero(evaluate(predicate, batch))
    if len(kept) == batch.num_rows:
        return None
    positions: NDArray[np.int64] = kept.to_numpy().view("int64")
    return positions


def take(batch: pa.RecordBatch, rows: NDArray[np.int64]) -> pa.RecordBatch:
    """The rows of a batch at these positions; also of a batch without columns."""
    if not batch.num_columns:
        return batch_of([], Struct(), len(rows))
    choice = Picked(rows)
    arrays = [choice.of(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of several batches as one; also of batches without columns."""
    if not batches[0].num_columns:
        return batch_of([], Struct(), sum(batch.num_rows for batch in batches))
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def spec_of(
    scan: Scan | DynamicScan,
    predicates: list[tuple[BoundExpr, int | None]],
    project: tuple[BoundNamed, ...] | None,
    scan_node: int | None,
) -> ScanSpec:
    """A scan with filters and a projection; a predicate brings the number of its node."""
    conditions: list[Condition] = []
    for predicate, node in predicates:
        for part in conjuncts(predicate):
            (expr,), need = narrow([part], scan.columns)
            conditions.append(Condition(expr, need, text=text_condition(expr)))
        conditions[-1] = replace(conditions[-1], node=node)
    result_need = output = scan.columns
    if project is not None:
        exprs, result_need = narrow((c.expr for c in project), scan.columns)
        project = tuple(replace(c, expr=e) for c, e in zip(project, exprs, strict=True))
        output = Struct(tuple(Field(c.name, c.expr.type) for c in project))
    csv = scan.csv if isinstance(scan, Scan) else None
    return ScanSpec(
        scan.format,
        scan.columns,
        scan.constants,
        csv,
        tuple(conditions),
        project,
        result_need,
        output,
        scan_node,
        isinstance(scan, Scan) and scan.strict,
        scan.on_error,
    )


def project(
    columns: tuple[BoundNamed, ...], batch: pa.RecordBatch, schema: Struct
) -> pa.RecordBatch:
    """Each row's columns computed anew."""
    arrays = [evaluate(column.expr, batch) for column in columns]
    return batch_of(arrays, schema, batch.num_rows)
