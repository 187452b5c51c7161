"""Top-k: the best rows by their keys, in one pass.

Right above a Parquet scan, only the keys are decoded at first, row groups that can't hold a better
row are skipped by their statistics, and in the end the rows are fetched where they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
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
        parts = (keys[:1], keys[1:]) if len(keys) > 1 else (keys,)
        self._stages = [_stage(spec, part) for part in parts]

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
        found = best.finish()
        if found is not None:
            yield found if self._keys_are_all else self._fetch(found)

    def _search(self, number: int, entry: Entry, best: Best) -> None:
        spec, context = self.spec, self.context
        source = ParquetSource(entry.path, entry.constants, context)
        try:
            groups = {g: source.group(g) for g in open_groups(source, spec, context)}
            self._look_ahead(entry, groups, best)
            for g in list(groups):
                if any(not source.may_hold(g, [limit]) for limit in self._limits(best)):
                    context.counters.add("batches_pruned")
                    continue
                group = groups.pop(g)
                rows = spec.survivors(group, initial_rows(entry, source, g), context)
                context.note(spec.scan_node, group.rows)
                if rows is None or len(rows):
                    self._gather(best, (number, group), rows)
        finally:
            source.close()

    def _look_ahead(self, entry: Entry, groups: dict[int, RowGroup], best: Best) -> None:
        """Look at the most promising row group first: it tells which others can't hold better.

        Nothing is gathered from it yet, so that equal rows are still met in their order.
        """
        key = self._stored_key
        if key is None or self.keys[0].nulls_first or len(groups) < 2:
            return
        limits = {g: group.source.bounds(g, key) for g, group in groups.items()}
        known = {g: b.high if self.keys[0].descending else b.low for g, b in limits.items() if b}
        known = {g: limit for g, limit in known.items() if limit is not None}
        if not known:
            return
        pick = max if self.keys[0].descending else min
        group = groups[pick(known, key=lambda g: known[g])]
        rows = initial_rows(entry, group.source, group.number)
        rows = self.spec.survivors(group, rows, self.context, note=False)
        if (group.rows if rows is None else len(rows)) >= self.count:
            (code,) = self._stages[0].codes(group, rows)
            ahead = Best(self.count, best.orders[:1])
            ahead.gather([code], pa.record_batch([code], ["code"]))
            found = ahead.finish()
            assert found is not None
            if found.column(0)[-1].is_valid:
                best.expect(found.column(0)[-1])

    def _gather(
        self, best: Best, place: tuple[int, RowGroup], rows: NDArray[np.int64] | None
    ) -> None:
        """The first key decides which rows may be among the best; the others are for those."""
        number, group = place
        first, others = self._stages[0], self._stages[1:]
        codes = first.codes(group, rows)
        kept = best.candidates(codes[0])
        if kept is not None:
            codes = [code.take(pa.array(kept)) for code in codes]
            rows = kept if rows is None else rows[kept]
        if rows is None or len(rows):
            for stage in others:
                codes += stage.codes(group, rows)
            if self._keys_are_all:
                best.gather(codes, self.spec.result(group, rows))
            else:
                rows = np.arange(group.rows) if rows is None else rows
                best.gather(codes, _places(number, group.number, rows))
            self.context.counters.peak(best.held)

    @cached_property
    def _keys_are_all(self) -> bool:
        """Whether what is given needs nothing but what the keys need: then nothing is fetched."""
        needs = [stage.need for stage in self._stages]
        return all(
            any(field in need for need in map(tuple, needs)) for field in self.spec.result_need
        )

    def _limits(self, best: Best) -> list[BoundExpr]:
        """What a row has to satisfy to be among the best, where statistics can tell."""
        key, expr = self.keys[0], self._stored_key
        if expr is None or key.nulls_first:
            return []
        found: list[BoundExpr] = []
        for bound, ties in ((best.expected, True), (best.bound, len(self.keys) > 1)):
            if bound is not None and bound.is_valid:
                value = from_code(pa.array([bound]), to_arrow(expr.type))[0].as_py()
                names = ("gt", "ge") if key.descending else ("lt", "le")
                limit = BoundLiteral(value, expr.type)
                found.append(BoundCall(names[ties], (expr, limit), BOOLEAN))
        return found

    @cached_property
    def _stored_key(self) -> BoundPath | None:
        """The first key as a path of the file, if it is nothing else."""
        expr: BoundExpr = self.keys[0].expr
        if self.spec.project is not None and isinstance(expr, BoundPath) and len(expr.steps) == 1:
            own = {column.name: column.expr for column in self.spec.project}
            expr = own[expr.steps[0].name]  # type: ignore[union-attr]
        elif self.spec.project is not None:
            return None
        return expr if isinstance(expr, BoundPath) else None

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
        need = "; ".join(", ".join(map(str, stage.need)) for stage in self._stages)
        text = describe_spec(self.spec)[2:]
        return f"{keys} of Parquet [{len(self.entries)} files]: keys from ({need}); then {text}"


def _places(file: int, group: int, rows: NDArray[np.int64]) -> pa.RecordBatch:
    numbers = [np.full(len(rows), file), np.full(len(rows), group), rows]
    return pa.record_batch([pa.array(n, pa.int64()) for n in numbers], ["file", "group", "row"])


@dataclass(frozen=True, slots=True)
class Stage:
    """Keys that are computed together: over projected columns (if any), over pruned columns."""

    keys: tuple[BoundExpr, ...]
    project: tuple[BoundNamed, ...] | None
    need: Struct

    def codes(self, group: RowGroup, rows: NDArray[np.int64] | None) -> list[pa.Array]:
        """The keys of these rows of a row group."""
        batch = group.columns(self.need, rows)
        if self.project is not None:
            fields = (Field(column.name, column.expr.type) for column in self.project)
            batch = project(self.project, batch, Struct(tuple(fields)))
        return [to_code(evaluate(key, batch)) for key in self.keys]


def _stage(spec: ScanSpec, keys: tuple[BoundSortKey, ...]) -> Stage:
    exprs = tuple(key.expr for key in keys)
    if spec.project is None:
        exprs, need = narrow(exprs, spec.columns)
        return Stage(exprs, None, need)
    names = {path.steps[0].name for e in exprs for path in row_paths(e)}  # type: ignore[union-attr]
    used = [column for column in spec.project if column.name in names]
    inner, need = narrow((column.expr for column in used), spec.columns)
    columns = tuple(replace(c, expr=e) for c, e in zip(used, inner, strict=True))
    return Stage(exprs, columns, need)
