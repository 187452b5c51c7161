"""A third engine, written against the visitors alone: rows as tuples, plain Python, no speed.

It proves that the visitors carry everything: nothing here looks at a node or an expression of
`millpond.plan`. Nodes become steps in the order in which they are visited, children first, so a run
goes through the steps once, and a shared node is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.engine.tiny import steps
from tests.engine.tiny.expressions import TinyExpressions
from tests.engine.tiny.functions import OTHERS, STRICT
from tests.engine.tiny.types import TinySchemas, arrow_schema, rows_of, table_of

from millpond.base.errors import RunCancelledError
from millpond.plan.counters import Counters
from millpond.plan.executor import Capabilities, Observation, check_supported, resolve_stored
from millpond.plan.visitor import PlanVisitor, visit_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.engine.tiny.types import Field

    from millpond.plan.executor import Scope
    from millpond.plan.node import Plan

NODES = frozenset(
    {
        *("Values", "Filter", "FilterOrdered", "Project", "Union", "Join", "Aggregate"),
        *("Sort", "TopK", "Head", "Tail", "Take", "Sample", "Shuffle"),
    }
)
BATCH_ROWS = 1000


@dataclass
class Step:
    """A node: what it is called, the columns it gives, its inputs, and how it makes rows."""

    name: str
    fields: list[Field]
    inputs: list[Step]
    make: Callable[..., steps.Rows]
    result: steps.Rowset | None = field(default=None, repr=False)

    def run(self) -> steps.Rowset:
        given = [step.result for step in self.inputs]
        return steps.Rowset([f.name for f in self.fields], self.make(*given))


class TinyPlans(PlanVisitor):
    """Collects steps in lists, and all of them in the order of their making."""

    engine = "tiny"

    def __init__(self) -> None:
        self.types = TinySchemas()
        self.expressions: TinyExpressions = TinyExpressions(self.types)
        self.lists: list[list[Step]] = []
        self.steps: list[Step] = []

    def make_plan_list(self, reserve: int) -> int:
        self.lists.append([])
        return len(self.lists) - 1

    def _add(
        self, name: str, to: int, schema: int, inputs: int | None, make: Callable[..., steps.Rows]
    ) -> None:
        below = [] if inputs is None else list(self.lists[inputs])
        step = Step(name, self.types.lists[schema], below, make)
        self.steps.append(step)
        self.lists[to].append(step)

    def visit_shared(self, sibling_list_id: int, shared_list_id: int) -> None:
        (step,) = self.lists[shared_list_id]
        self.lists[sibling_list_id].append(step)

    def visit_values(self, sibling_list_id: int, schema_list_id: int, data: object) -> None:
        assert isinstance(data, pa.Table)
        fields = self.types.lists[schema_list_id]
        self._add("Values", sibling_list_id, schema_list_id, None, lambda: rows_of(data, fields))

    def visit_filter(
        self, sibling_list_id: int, schema_list_id: int, predicate_list_id: int, child_list_id: int
    ) -> None:
        predicate = self.expressions.one(predicate_list_id)
        ids = (sibling_list_id, schema_list_id, child_list_id)
        self._add("Filter", *ids, lambda given: steps.keep(given, predicate))

    def visit_filter_ordered(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        name: str,
        columns: Sequence[str],
        row_filter: Any,
        child_list_id: int,
    ) -> None:
        fields = self.types.lists[schema_list_id]
        seen = [next(f for f in fields if f.name == column) for column in columns]

        def kept(given: steps.Rowset) -> steps.Rows:
            wanted = [given.names.index(column) for column in columns]
            narrow = [tuple(row[at] for at in wanted) for row in given.rows]
            run = row_filter.open()
            found: list[bool] = []
            for batch in table_of(narrow, seen).to_batches(BATCH_ROWS):
                found.extend(run.apply(batch).to_pylist())
            run.finish()
            return [row for row, ok in zip(given.rows, found, strict=True) if ok]

        self._add("FilterOrdered", sibling_list_id, schema_list_id, child_list_id, kept)

    def visit_project(
        self, sibling_list_id: int, schema_list_id: int, column_list_id: int, child_list_id: int
    ) -> None:
        columns = self.expressions.lists[column_list_id]
        ids = (sibling_list_id, schema_list_id, child_list_id)
        self._add("Project", *ids, lambda given: steps.project(given, columns))

    def visit_union(self, sibling_list_id: int, schema_list_id: int, child_list_id: int) -> None:
        ids = (sibling_list_id, schema_list_id, child_list_id)
        self._add("Union", *ids, lambda *given: [row for one in given for row in one.rows])

    def visit_join(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        how: str,
        left_key_list_id: int,
        right_key_list_id: int,
        nulls_equal: bool,
        child_list_id: int,
    ) -> None:
        lists = self.expressions.lists
        keys = (lists[left_key_list_id], lists[right_key_list_id])

        def joined(left: steps.Rowset, right: steps.Rowset) -> steps.Rows:
            return steps.join(left, right, how, keys, nulls_equal=nulls_equal)

        self._add(f"Join {how}", sibling_list_id, schema_list_id, child_list_id, joined)

    def visit_aggregate(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        key_list_id: int,
        measure_list_id: int,
        child_list_id: int,
    ) -> None:
        lists = self.expressions.lists
        keys, measures = lists[key_list_id], lists[measure_list_id]
        ids = (sibling_list_id, schema_list_id, child_list_id)
        self._add("Aggregate", *ids, lambda given: steps.aggregate(given, keys, measures))

    def visit_sort(
        self, sibling_list_id: int, schema_list_id: int, key_list_id: int, child_list_id: int
    ) -> None:
        keys = self.expressions.lists[key_list_id]
        ids = (sibling_list_id, schema_list_id, child_list_id)
        self._add("Sort", *ids, lambda given: steps.sort(given, keys))

    def visit_top_k(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        n: int,
        key_list_id: int,
        child_list_id: int,
    ) -> None:
        keys = self.expressions.lists[key_list_id]
        ids = (sibling_list_id, schema_list_id, child_list_id)
        self._add("TopK", *ids, lambda given: steps.sort(given, keys)[:n])

    def visit_head(
        self, sibling_list_id: int, schema_list_id: int, n: int, child_list_id: int
    ) -> None:
        ids = (sibling_list_id, schema_list_id, child_list_id)
        self._add("Head", *ids, lambda given: given.rows[:n])

    def visit_tail(
        self, sibling_list_id: int, schema_list_id: int, n: int, child_list_id: int
    ) -> None:
        ids = (sibling_list_id, schema_list_id, child_list_id)
        self._add("Tail", *ids, lambda given: given.rows[max(0, len(given.rows) - n) :])

    def visit_take(
        self, sibling_list_id: int, schema_list_id: int, indices: Sequence[int], child_list_id: int
    ) -> None:
        ids = (sibling_list_id, schema_list_id, child_list_id)
        self._add("Take", *ids, lambda given: steps.take(given, indices))

    def visit_sample(
        self,
        sibling_list_id: int,
        schema_list_id: int,
        seed: int,
        n: int | None,
        fraction: float | None,
        child_list_id: int,
    ) -> None:
        ids = (sibling_list_id, schema_list_id, child_list_id)
        self._add("Sample", *ids, lambda given: steps.sample(given, seed, n, fraction))

    def visit_shuffle(
        self, sibling_list_id: int, schema_list_id: int, seed: int, child_list_id: int
    ) -> None:
        def shuffled(given: steps.Rowset) -> steps.Rows:
            return [given.rows[at] for at in steps.by_chance(given, seed)]

        self._add("Shuffle", sibling_list_id, schema_list_id, child_list_id, shuffled)


class TinyExecution:
    """A run: it computes everything when the first batch is asked for."""

    def __init__(self, built: TinyPlans, root: Step) -> None:
        self._built = built
        self._root = root
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._closed = self._cancelled = False
        self.counters = Counters.begin()

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._root.fields)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._closed:
            raise StopIteration
        if self._cancelled:
            raise RunCancelledError("tiny")
        if self._batches is None:
            for step in self._built.steps:
                step.result = step.run()
            assert self._root.result is not None
            table = table_of(self._root.result.rows, self._root.fields)
            batches = table.to_batches(BATCH_ROWS)
            self._batches = iter([batch for batch in batches if batch.num_rows])
        batch = next(self._batches)
        self.counters.add("rows_emitted", batch.num_rows)
        return batch

    def cancel(self) -> None:
        self._cancelled = True

    def close(self) -> None:
        self._closed = True
        for step in self._built.steps:
            step.result = None

    def observations(self) -> tuple[Observation, ...]:
        done = [step for step in self._built.steps if step.result is not None]
        return tuple(
            Observation(step.name, rows=len(step.result.rows)) for step in done if step.result
        )


class TinyEngine:
    """The engine: `millpond.plan.executor.Executor` over the visitors."""

    name = "tiny"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(NODES, frozenset({*STRICT, *OTHERS}))

    def execute(self, plan: Plan, scope: Scope | None = None) -> TinyExecution:
        built, root = self._build(plan, scope)
        return TinyExecution(built, root)

    def execute_parallel(self, plan: Plan, scope: Scope | None = None) -> TinyExecution:
        return self.execute(plan, scope)

    def explain(self, plan: Plan, scope: Scope | None = None) -> str:
        built, _ = self._build(plan, scope)
        return "\n".join(step.name for step in built.steps)

    def _build(self, plan: Plan, scope: Scope | None) -> tuple[TinyPlans, Step]:
        resolved = resolve_stored(plan, scope)
        check_supported(resolved, self)
        built = TinyPlans()
        (root,) = built.lists[visit_plan(resolved, built)]
        return built, root
