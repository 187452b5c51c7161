"""Top-k: the best rows by their keys, in one pass.

Right above a Parquet scan, only the keys are decoded at first, row groups that can't hold a better
row are skipped by their statistics, and in the end the rows are fetched where they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millpond.engine.arrow.best import Best
from millpond.engine.arrow.codes import from_code, order_of, to_code
from millpond.engine.arrow.eval import evaluate
from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.source.need import narrow
from millpond.engine.arrow.source.parquet import ParquetSource, RowGroup
from millpond.engine.arrow.source.scan import (
    Entry,
    describe_spec,
    initial_rows,
    may_match,
    open_groups,
)
from millpond.engine.arrow.source.spec import concat, project, take
from millpond.plan.arrow import to_arrow
from millpond.plan.bound import BoundCall, BoundLiteral, BoundPath, row_paths
from millpond.plan.types import BOOLEAN, Field, Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps
    from millpond.engine.arrow.source.spec import ScanSpec
    from millpond.plan.bound import BoundExpr, BoundNamed, BoundSortKey


class TopRows(Operator):
    """The first rows by their keys, of any input."""

    def __init__(
        self, source: Operator, keys: tuple[BoundSortKey, ...], count: int, context: Context
    ) -> None:
        super().__init__(source)
        self.keys = keys
        self.count = count
        self.context = context

    def run(self) -> Steps:
        """One pass; only what may be among the best is held."""
        if not self.count:
            return
        best = Best(self.count, [order_of(key) for key in self.keys])
        while (batch := (yield self.inputs[0])) is not None:
            best.add([to_code(evaluate(key.expr, batch)) for key in self.keys], batch)
            self.context.counters.peak(best.held)
        found = best.finish()
        if found is not None:
            yield found

    def describe(self) -> str:
        """How many, and the keys."""
        return f"Top {self.count} by {', '.join(map(str, self.keys))}, streaming"


class TopOfParquet(Operator):
    """The first rows by their keys, of a Parquet scan: keys first, rows last."""

    def __init__(
        self,
        spec: ScanSpec,
        entries: Sequence[Entry],
        keys: tuple[BoundSortKey, ...],
        count: int,
        context: Context,
    ) -> None:
        super().__init__()
        self.spec = spec
        self.entries = entries
        self.keys = keys
        self.count = count
        self.context = context
        self._inner, self._exprs, self._need = _key_columns(spec, keys)

    def run(self) -> Steps:
        """Find where the best rows are, then fetch them."""
        if not self.count:
            return
        best = Best(self.count, [order_of(key) for key in self.keys])
        for number, entry in enumerate(self.entries):
            if not may_match(entry, self.spec):
                self.context.counters.add("files_pruned")
            else:
                self._search(number, entry, best)
        places = best.finish()
        if places is not None:
            yield self._fetch(places)

    def _search(self, number: int, entry: Entry, best: Best) -> None:
        spec, context = self.spec, self.context
        source = ParquetSource(entry.path, entry.constants, context)
        try:
            for g in open_groups(source, spec, context):
                better = self._better(best)
                if better is not None and not source.may_hold(g, [better]):
                    context.counters.add("batches_pruned")
                    continue
                group = source.group(g)
                rows = spec.survivors(group, initial_rows(entry, source, g), context)
                context.note(spec.scan_node, group.rows)
                if rows is None or len(rows):
                    self._gather(best, (number, group), rows)
        finally:
            source.close()

    def _gather(
        self, best: Best, place: tuple[int, RowGroup], rows: NDArray[np.int64] | None
    ) -> None:
        number, group = place
        codes = self._codes(group, rows)
        kept = best.candidates(codes[0])
        if kept is not None:
            codes = [code.take(pa.array(kept)) for code in codes]
            rows = kept if rows is None else rows[kept]
        rows = np.arange(group.rows) if rows is None else rows
        if len(rows):
            best.gather(codes, _places(number, group.number, rows))
            self.context.counters.peak(best.held)

    def _codes(self, group: RowGroup, rows: NDArray[np.int64] | None) -> list[pa.Array]:
        batch = group.columns(self._need, rows)
        if self._inner is not None:
            fields = (Field(column.name, column.expr.type) for column in self._inner)
            batch = project(self._inner, batch, Struct(tuple(fields)))
        return [to_code(evaluate(expr, batch)) for expr in self._exprs]

    def _better(self, best: Best) -> BoundExpr | None:
        """What a row has to satisfy to be among the best, where statistics can tell."""
        key, bound = self.keys[0], best.bound
        if bound is None or not bound.is_valid or key.nulls_first or self._inner is not None:
            return None
        if not isinstance(key.expr, BoundPath):
            return None
        value = from_code(pa.array([bound]), to_arrow(key.expr.type))[0].as_py()
        names = ("gt", "ge") if key.descending else ("lt", "le")
        limit = BoundLiteral(value, key.expr.type)
        return BoundCall(names[len(self.keys) > 1], (key.expr, limit), BOOLEAN)

    def _fetch(self, places: pa.RecordBatch) -> pa.RecordBatch:
        """The rows at these places, each row group decoded once, in the order of the places."""
        files, groups, rows = (column.to_numpy() for column in places.columns)
        order = np.lexsort((rows, groups, files))
        parts = []
        for f in np.unique(files):
            entry = self.entries[f]
            source = ParquetSource(entry.path, entry.constants, self.context)
            try:
                for g in np.unique(groups[files == f]):
                    chosen = order[(files[order] == f) & (groups[order] == g)]
                    parts.append(self.spec.result(source.group(int(g)), rows[chosen]))
            finally:
                source.close()
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return take(concat(parts), back)

    def describe(self) -> str:
        """The keys, and what is decoded when."""
        keys = f"Top {self.count} by {', '.join(map(str, self.keys))}"
        need = ", ".join(map(str, self._need))
        text = describe_spec(self.spec)[2:]
        return f"{keys} of Parquet [{len(self.entries)} files]: keys from ({need}); then {text}"


def _places(file: int, group: int, rows: NDArray[np.int64]) -> pa.RecordBatch:
    numbers = [np.full(len(rows), file), np.full(len(rows), group), rows]
    return pa.record_batch([pa.array(n, pa.int64()) for n in numbers], ["file", "group", "row"])


def _key_columns(
    spec: ScanSpec, keys: tuple[BoundSortKey, ...]
) -> tuple[tuple[BoundNamed, ...] | None, tuple[BoundExpr, ...], Struct]:
    """The projected columns that keys look at (None without a projection), the keys, the need."""
    exprs = tuple(key.expr for key in keys)
    if spec.project is None:
        return None, *narrow(exprs, spec.columns)
    names = {path.steps[0].name for e in exprs for path in row_paths(e)}  # type: ignore[union-attr]
    used = [column for column in spec.project if column.name in names]
    inner, need = narrow((column.expr for column in used), spec.columns)
    columns = tuple(replace(c, expr=e) for c, e in zip(used, inner, strict=True))
    return columns, exprs, need
