"""Aggregation: batches become partial results, and those are merged before they grow too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from millpond.base.errors import BudgetExceededError
from millpond.engine.arrow.codes import Order, from_code, permutation, to_code
from millpond.engine.arrow.eval import evaluate
from millpond.engine.arrow.manygroups import combine_sorted
from millpond.engine.arrow.measures import CountDistinct, How, Step, may_overflow, state_of
from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.source.batch import batch_of
from millpond.plan.arrow import to_arrow
from millpond.plan.bound import BoundExpr, BoundPath
from millpond.plan.paths import Name
from millpond.plan.types import STRING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps
    from millpond.plan.rows import Aggregate

_GATHER_ROWS = 1 << 20
_MERGE_ROWS = 1 << 20
_EXACT = pa.decimal128(38, 0)


class Group(Operator):
    """One row a group, in the order of the keys."""

    def __init__(self, source: Operator, node: Aggregate, context: Context) -> None:
        super().__init__(source)
        self.keys = node.keys
        self.schema = node.schema
        self.context = context
        self.states = [state_of(measure) for measure in node.measures]
        self.how: tuple[How, ...] = tuple(how for state in self.states for how in state.how)
        self.begin: list[Step] = []
        column = len(self.keys)
        for state in self.states:
            self.begin += state.steps(column)
            column += state.width

    def run(self) -> Steps:
        """Sum up batch by batch, merge, and give the groups in order."""
        partials = Partials(len(self.keys), self.how, self.begin)
        distinct = {
            number: Partials(len(self.keys) + 1, ())
            for number, state in enumerate(self.states)
            if isinstance(state, CountDistinct)
        }
        while (batch := (yield self.inputs[0])) is not None:
            keys = [_key(key.expr, batch) for key in self.keys]
            columns = [*keys, *(c for s in self.states for c in s.start(batch))]
            if columns:
                partials.add(columns)
            else:  # Rows are only counted, and they are counted already.
                partials.append([pa.array([batch.num_rows], pa.int64()) for _ in self.states])
            for number, gathered in distinct.items():
                values = to_code(self.states[number].values(batch))
                _add_values(gathered, keys, values)
            self._check(partials)
        for number, gathered in distinct.items():
            _add_counts(partials, gathered, self._column_of(number), len(self.keys))
        groups = partials.merged()
        if groups is None:
            if not self.keys:
                yield self._of_nothing()
            return
        yield self._result(groups)

    def _column_of(self, number: int) -> int:
        return len(self.keys) + sum(len(state.how) for state in self.states[:number])

    def _check(self, partials: Partials) -> None:
        limit = self.context.max_group_keys
        self.context.counters.peak(partials.rows)
        if limit is None or not self.keys or partials.rows <= limit:
            return
        partials.merge()
        if partials.rows > limit:
            raise BudgetExceededError(
                "max_group_keys",
                required=partials.rows,
                limit=limit,
                suggestion="group by fewer keys, filter first, or raise max_group_keys",
            )

    def _result(self, groups: list[pa.Array]) -> pa.RecordBatch:
        keys, states = groups[: len(self.keys)], groups[len(self.keys) :]
        if keys:
            order = pa.array(permutation(keys, [Order()] * len(keys)))
            keys = [key.take(order) for key in keys]
            states = [state.take(order) for state in states]
        arrays = [
            from_code(code, to_arrow(key.expr.type))
            for code, key in zip(keys, self.keys, strict=True)
        ]
        for state in self.states:
            width = len(state.how)
            arrays.append(state.finish(states[:width]))
            states = states[width:]
        return batch_of(arrays, self.schema, len(arrays[0]))

    def _of_nothing(self) -> pa.RecordBatch:
        """The one row of an aggregation without keys over no rows: zero counts, all else null."""
        arrays = []
        for state in self.states:
            counts = state.measure.function in ("count", "count_distinct")
            arrays.append(pa.array([0 if counts else None], state.target))
        return batch_of(arrays, self.schema, 1)

    def describe(self) -> str:
        """The keys and the measures."""
        keys = f" by {', '.join(map(str, self.keys))}" if self.keys else ""
        measures = ", ".join(str(state.measure) for state in self.states)
        return f"Group{keys}: {measures}; batches summed up, then merged"


class Partials:
    """Partial results: key columns, then state columns. They are merged as they grow."""

    def __init__(
        self, key_count: int, how: tuple[How, ...], begin: list[Step] | None = None
    ) -> None:
        self.key_count = key_count
        self._merging: list[Step] = list(enumerate(how, start=key_count))
        self._begin = self._merging if begin is None else begin
        self._single: list[list[pa.Array]] = []
        self._single_rows = 0
        self._parts: list[list[pa.Array]] = []
        self._part_rows = 0
        self._merge_at = _MERGE_ROWS

    @property
    def rows(self) -> int:
        """How many rows are held, of either kind."""
        return self._single_rows + self._part_rows

    def add(self, columns: list[pa.Array]) -> None:
        """Rows: keys, and what states begin with. Many at once are summed up cheaper by far."""
        self._single.append(columns)
        self._single_rows += len(columns[0])
        if self._single_rows >= _GATHER_ROWS:
            self._sum_up()

    def _sum_up(self) -> None:
        if self._single:
            columns = [_gathered(list(parts)) for parts in zip(*self._single, strict=True)]
            self._single, self._single_rows = [], 0
            found = combine(columns, self.key_count, self._begin)
            if any(at.is_dictionary(column.type) for column in columns):
                # A file may number one text twice: what it numbered is grouped as text once more.
                texts = [pa.chunked_array([_plain(column)]) for column in found]
                found = combine(texts, self.key_count, self._merging)
            self.append(found)

    def append(self, columns: list[pa.Array]) -> None:
        """Partial results."""
        self._parts.append(columns)
        self._part_rows += len(columns[0])
        if self._part_rows > self._merge_at:
            self.merge()
            self._merge_at = max(_MERGE_ROWS, 2 * self._part_rows)

    def merge(self) -> None:
        """Make one row a group of all there is."""
        self._sum_up()
        if len(self._parts) > 1:
            columns = [_joined(list(parts)) for parts in zip(*self._parts, strict=True)]
            self._parts = [combine(columns, self.key_count, self._merging)]
            self._part_rows = len(self._parts[0][0])

    def merged(self) -> list[pa.Array] | None:
        """One row a group; None if there was no row at all."""
        self.merge()
        return self._parts[0] if self._parts else None


def text_column(expr: BoundExpr) -> str | None:
    """The name of a text column, if that is what a key is."""
    if isinstance(expr, BoundPath) and len(expr.steps) == 1 and expr.type == STRING:
        return expr.steps[0].name if isinstance(expr.steps[0], Name) else None
    return None


def _key(expr: BoundExpr, batch: pa.RecordBatch) -> pa.Array:
    """A key's values; texts that came as a dictionary stay one."""
    name = text_column(expr)
    if name is not None and at.is_dictionary(batch.schema.field(name).type):
        return batch.column(name)
    return to_code(evaluate(expr, batch))


def _gathered(parts: list[pa.Array]) -> pa.ChunkedArray:
    """Parts as one column; dictionaries are made one, unless some part is none."""
    dictionaries = [at.is_dictionary(part.type) for part in parts]
    if all(dictionaries):
        return pa.chunked_array(parts).unify_dictionaries()
    return pa.chunked_array([_plain(part) for part in parts] if any(dictionaries) else parts)


def _plain(array: pa.Array) -> pa.Array:
    """A dictionary as its texts; any other array as it is."""
    return array.cast(pa.string()) if at.is_dictionary(array.type) else array


def _joined(parts: list[pa.Array]) -> pa.ChunkedArray:
    if any(part.type == _EXACT for part in parts) and parts[0].type in (pa.int64(), _EXACT):
        parts = [part.cast(_EXACT) for part in parts]
    return pa.chunked_array(parts)


def combine(
    columns: list[pa.ChunkedArray], key_count: int, steps: Sequence[Step]
) -> list[pa.Array]:
    """One row for each different key: what each step makes of the group's rows."""
    found = combine_sorted(columns, key_count, steps)
    if found is not None:
        return found
    names = [str(i) for i in range(len(columns))]
    given = list(columns)
    functions: list[tuple[str | list[str], str]] = []
    for i, how in steps:
        if how == "count_all":
            functions.append(([], how))
        elif how == "checked_sum":
            if may_overflow(given[i]):
                given[i] = given[i].cast(_EXACT)
            functions.append((names[i], "sum"))
        elif how in ("first", "last"):
            # Positions stand for values, which may be of any type; rows that don't count have none.
            positions = pa.array(np.arange(len(given[i])))
            given[i] = pc.if_else(given[i + 1].is_valid(), positions, pa.scalar(None, pa.int64()))
            functions.append((names[i], "min" if how == "first" else "max"))
        else:
            functions.append((names[i], how))
    table = pa.table(given, names)
    grouped = table.group_by(names[:key_count], use_threads=False).aggregate(functions)
    result = [_one_chunk(column) for column in grouped.columns]
    for place, (i, how) in enumerate(steps, start=key_count):
        if how in ("first", "last"):
            result[place] = _one_chunk(columns[i].take(result[place]))
    return result


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _add_values(gathered: Partials, keys: list[pa.Array], values: pa.Array) -> None:
    """Different values with their keys; nulls do not count."""
    if values.null_count:
        valid = values.is_valid()
        keys = [key.filter(valid) for key in keys]
        values = values.filter(valid)
    if len(values):
        gathered.add([*keys, values])


def _add_counts(partials: Partials, gathered: Partials, column: int, key_count: int) -> None:
    """The numbers of different values, as partial results in which all else is unknown."""
    found, template = gathered.merged(), partials.merged()
    if found is None or template is None:
        return
    ones = pa.repeat(pa.scalar(1, pa.int64()), len(found[0]))
    single = [pa.chunked_array([column]) for column in (*found[:key_count], ones)]
    counted = combine(single, key_count, [(key_count, "sum")])
    rows = len(counted[-1])
    part = [*counted[:-1], *(pa.nulls(rows, c.type) for c in template[key_count:])]
    part[column] = counted[-1]
    partials.append(part)
