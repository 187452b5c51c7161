"""Top-k: the best rows by their keys, in one pass.

Right above a Parquet scan, only the first key is decoded at first, and row groups that can't hold a
better row are skipped by their statistics. In the end the other keys are decoded where the first
leaves it open, and the rows where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millpond.engine.arrow.best import Best, Finalists, Gathered, last_of_best
from millpond.engine.arrow.codes import from_code, order_of, to_code
from millpond.engine.arrow.eval import evaluate
from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.source.groups import initial_rows, open_groups
from millpond.engine.arrow.source.parquet import ParquetSource
from millpond.engine.arrow.source.scan import describe_spec, may_match
from millpond.engine.arrow.source.spec import concat, take
from millpond.engine.arrow.topkeys import stage_of
from millpond.plan.arrow import to_arrow
from millpond.plan.bound import BoundCall, BoundLiteral, BoundPath
from millpond.plan.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps
    from millpond.engine.arrow.source.entry import Entry
    from millpond.engine.arrow.source.rowgroup import RowGroup
    from millpond.engine.arrow.source.spec import ScanSpec
    from millpond.plan.bound import BoundExpr, BoundSortKey


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


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A row group that was looked at before its turn: its rows, and what nodes gave of them."""

    group: RowGroup
    rows: NDArray[np.int64] | None
    notes: list[tuple[int | None, int]]

    def used(self, context: Context) -> NDArray[np.int64] | None:
        """The rows, now that its turn has come."""
        for node, count in self.notes:
            context.note(node, count)
        return self.rows


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
        self._stages = [stage_of(spec, part) for part in parts]

    def run(self) -> Steps:
        """Find where the best rows are, then fetch them."""
        if not self.count:
            return
        orders = [order_of(key) for key in self.keys]
        best: Gathered = Best(self.count, orders)
        if len(self._stages) > 1 and not self._keys_are_all:
            best = Finalists(self.count, orders[0])
        for number, entry in enumerate(self.entries):
            if not may_match(entry, self.spec):
                self.context.counters.add("files_pruned")
            else:
                best = self._search(number, entry, best)
        found = self._decide(best) if isinstance(best, Finalists) else self._finish(best)
        if found is not None:
            yield found

    def _finish(self, best: Gathered) -> pa.RecordBatch | None:
        assert isinstance(best, Best)
        found = best.finish()
        return found if found is None or self._keys_are_all else self._fetch(found)

    def _search(self, number: int, entry: Entry, best: Gathered) -> Gathered:
        spec, context = self.spec, self.context
        source = ParquetSource.of(entry, spec, context)
        try:
            groups = {g: source.group(g) for g in open_groups(source, spec, context)}
            ahead = self._look_ahead(entry, groups, best)
            for g in list(groups):
                if any(not source.may_hold(g, [limit]) for limit in self._limits(best)):
                    context.counters.add("batches_pruned")
                    continue
                group = groups.pop(g)
                if ahead is not None and ahead.group is group:
                    rows = ahead.used(context)
                else:
                    rows = spec.survivors(group, initial_rows(entry, source, g), context.note)
                context.note(spec.scan_node, group.rows)
                if rows is None or len(rows):
                    best = self._gather(best, (number, group), rows)
        finally:
            source.close()
        return best

    def _look_ahead(
        self, entry: Entry, groups: dict[int, RowGroup], best: Gathered
    ) -> _Ahead | None:
        """Look at the most promising row group first: it tells which others can't hold better.

        Nothing is gathered from it yet, so that equal rows are still met in their order. Which of
        its rows meet the conditions is known then, and can't be asked for again: see `RowGroup`.
        """
        key = self._stored_key
        if key is None or self.keys[0].nulls_first or len(groups) < 2:
            return None
        limits = {g: group.source.bounds(g, key) for g, group in groups.items()}
        known = {g: b.high if self.keys[0].descending else b.low for g, b in limits.items() if b}
        known = {g: limit for g, limit in known.items() if limit is not None}
        if not known:
            return None
        pick = max if self.keys[0].descending else min
        group = groups[pick(known, key=lambda g: known[g])]
        notes: list[tuple[int | None, int]] = []
        rows = self.spec.survivors(
            group,
            initial_rows(entry, group.source, group.number),
            lambda node, count: notes.append((node, count)),
        )
        if (group.rows if rows is None else len(rows)) >= self.count:
            code = self._stages[0].codes(group, rows)[0]
            bound = last_of_best(code, best.orders[0], self.count)
            if bound.is_valid:
                best.expect(bound)
        return _Ahead(group, rows, notes)

    def _gather(
        self, best: Gathered, place: tuple[int, RowGroup], rows: NDArray[np.int64] | None
    ) -> Gathered:
        """The first key decides which rows may be among the best; the others are for those."""
        number, group = place
        first, others = self._stages[0], self._stages[1:]
        codes = first.codes(group, rows)
        kept = best.candidates(codes[0])
        if kept is not None:
            codes = [code.take(pa.array(kept)) for code in codes]
            rows = kept if rows is None else rows[kept]
            if not len(rows):
                return best
        if isinstance(best, Best):
            for stage in others:
                codes += stage.codes(group, rows)
        if self._keys_are_all:
            best.gather(codes, self.spec.result(group, rows))
        else:
            rows = np.arange(group.rows) if rows is None else rows
            best.gather(codes, _places(number, group.number, rows))
        self.context.counters.peak(best.held)
        if isinstance(best, Finalists) and best.too_many:
            return self._settle(best)
        return best

    def _settle(self, finalists: Finalists) -> Best:
        """Many rows are equal by the first key: from here on all keys are looked at."""
        best = Best(self.count, [order_of(key) for key in self.keys])
        if finalists.expected is not None:
            best.expect(finalists.expected)
        found = finalists.finish()
        assert found is not None
        code, places, _ = found
        for group, part, rows in self._visit(places):
            codes = [code[part], *self._stages[1].codes(group, rows)]
            best.gather(codes, places[part])
        return best

    def _decide(self, finalists: Finalists) -> pa.RecordBatch | None:
        """The best of the finalists, by all keys.

        Row groups that hold some of the best for certain give their rows right away, while they are
        open; of the others just the keys are decoded, and rows if they turn out to be needed.
        """
        found = finalists.finish()
        if found is None:
            return None
        code, places, certain = found
        best = Best(self.count, [order_of(key) for key in self.keys])
        parts: list[pa.RecordBatch] = []
        fetched = 0
        for group, part, rows in self._visit(places):
            codes = [code[part], *self._stages[1].codes(group, rows)]
            at = np.full(len(rows), -1)
            if certain[part].any():
                parts.append(self.spec.result(group, rows))
                at = np.arange(fetched, fetched + len(rows))
                fetched += len(rows)
            best.gather(codes, places[part].append_column("at", pa.array(at)))
        chosen = best.finish()
        assert chosen is not None
        at = chosen.column("at").to_numpy().copy()
        late = at < 0
        if late.any():
            parts.append(self._fetch(chosen.filter(pa.array(late))))
            at[late] = np.arange(fetched, fetched + late.sum())
        return take(concat(parts), at)

    @cached_property
    def _keys_are_all(self) -> bool:
        """Whether what is given needs nothing but what the keys need: then nothing is fetched."""
        needs = [stage.need for stage in self._stages]
        return all(
            any(field in need for need in map(tuple, needs)) for field in self.spec.result_need
        )

    def _limits(self, best: Gathered) -> list[BoundExpr]:
        """What a row has to satisfy to be among the best, where statistics can tell."""
        key, expr = self.keys[0], self._stored_key
        if expr is None or key.nulls_first:
            return []
        found: list[BoundExpr] = []
        for bound, ties in ((best.expected, True), (best.bound, best.ties)):
            if bound is not None and bound.is_valid:
                try:
                    value = from_code(pa.array([bound]), to_arrow(expr.type))[0].as_py()
                except (OverflowError, UnicodeDecodeError):  # a year 10,000, say
                    continue
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
        order = np.lexsort([column.to_numpy() for column in places.columns[2::-1]])
        parts = [
            self.spec.result(group, rows) for group, _, rows in self._visit(take(places, order))
        ]
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return take(concat(parts), back)

    def _visit(self, places: pa.RecordBatch) -> Iterator[tuple[RowGroup, slice, NDArray[np.int64]]]:
        """Each row group of places that stand in order: where its places are, and its rows."""
        files, groups, rows = (column.to_numpy() for column in places.columns[:3])
        new_file = np.diff(files, prepend=-1) != 0
        new_group = new_file | (np.diff(groups, prepend=-1) != 0)
        starts = np.flatnonzero(new_group)
        ends = np.append(starts[1:], len(rows))
        source: ParquetSource | None = None
        try:
            for start, end in zip(starts, ends, strict=True):
                if new_file[start]:
                    if source is not None:
                        source.close()
                        source = None
                    entry = self.entries[files[start]]
                    source = ParquetSource.of(entry, self.spec, self.context)
                assert source is not None
                part = slice(int(start), int(end))
                yield source.group(int(groups[start])), part, rows[part]
        finally:
            if source is not None:
                source.close()

    def describe(self) -> str:
        """The keys, and what is decoded when."""
        keys = f"Top {self.count} by {', '.join(map(str, self.keys))}"
        need = "; ".join(", ".join(map(str, stage.need)) for stage in self._stages)
        text = describe_spec(self.spec)[2:]
        return f"{keys} of Parquet [{len(self.entries)} files]: keys from ({need}); then {text}"


def _places(file: int, group: int, rows: NDArray[np.int64]) -> pa.RecordBatch:
    numbers = [np.full(len(rows), file), np.full(len(rows), group), rows]
    return pa.record_batch([pa.array(n, pa.int64()) for n in numbers], ["file", "group", "row"])
