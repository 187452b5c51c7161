"""Measures as states: each row begins as a state of its own, and states of a group combine.

So a batch is summed up, and partial results are merged, by one and the same step (`combine` in
`aggregate.py`), however many rounds that takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from millpond.base.errors import EvaluationError
from millpond.engine.arrow.codes import from_code, to_code
from millpond.engine.arrow.eval import evaluate, evaluate_mask
from millpond.engine.arrow.source.files import ENGINE
from millpond.plan.arrow import to_arrow
from millpond.plan.types import Decimal, is_integral

if TYPE_CHECKING:
    from millpond.plan.aggregates import BoundMeasure

How: TypeAlias = Literal["sum", "checked_sum", "min", "max", "first", "last"]
"""How a state's column combines; `first` and `last` go with a column that says which rows count."""


class State:
    """One measure's state columns: how they begin, how they combine, what they come to."""

    how: tuple[How, ...] = ()

    def __init__(self, measure: BoundMeasure) -> None:
        self.measure = measure
        self.target = to_arrow(measure.type)

    def start(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The states of single rows."""
        raise NotImplementedError

    def finish(self, columns: list[pa.Array]) -> pa.Array:
        """The results of combined states."""
        return columns[0].cast(self.target)

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """The argument; null where the measure's own filter leaves a row out."""
        assert self.measure.arg is not None
        found = evaluate(self.measure.arg, batch)
        if self.measure.where is None:
            return found
        mask = evaluate_mask(self.measure.where, batch)
        return pc.if_else(mask, found, pa.scalar(None, found.type))


class Count(State):
    """How many rows, or values that are not null."""

    how = ("sum",)

    def start(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """One for each that counts."""
        measure = self.measure
        if measure.arg is not None:
            return [self.values(batch).is_valid().cast(pa.int64())]
        if measure.where is not None:
            return [evaluate_mask(measure.where, batch).cast(pa.int64())]
        return [pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)]

    def finish(self, columns: list[pa.Array]) -> pa.Array:
        """Zero over no rows."""
        return columns[0].fill_null(0)


class Sum(State):
    """A sum; of whole numbers and decimals it is exact, and what does not fit is an error."""

    def __init__(self, measure: BoundMeasure) -> None:
        super().__init__(measure)
        assert measure.arg is not None
        given = measure.arg.type
        self.how = ("checked_sum",) if is_integral(given) else ("sum",)
        self.type = self.target
        if isinstance(given, Decimal):
            # With ten digits to spare no number of rows overflows; otherwise twice the digits do.
            wide = given.precision > 28
            self.type = pa.decimal256(76, given.scale) if wide else pa.decimal128(38, given.scale)

    def start(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The values, wide enough to be added."""
        return [self.values(batch).cast(self.type)]

    def finish(self, columns: list[pa.Array]) -> pa.Array:
        """The sums, if they fit."""
        try:
            return columns[0].cast(self.target)
        except pa.ArrowInvalid as error:
            raise EvaluationError(
                f"the sum {self.measure} does not fit {self.measure.type}",
                engine=ENGINE,
                hint="sum a cast to decimal or double",
            ) from error


class Mean(State):
    """The average as a double."""

    how = ("sum", "sum")

    def start(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Sum and count."""
        values = self.values(batch)
        return [values, values.is_valid().cast(pa.int64())]

    def finish(self, columns: list[pa.Array]) -> pa.Array:
        """Null over no values, since the sum is."""
        return pc.divide(columns[0], columns[1].cast(pa.float64()))


class Extreme(State):
    """The smallest or the largest value."""

    def __init__(self, measure: BoundMeasure) -> None:
        super().__init__(measure)
        self.how = ("min",) if measure.function == "min" else ("max",)

    def start(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Values in the plan's order."""
        return [to_code(self.values(batch))]

    def finish(self, columns: list[pa.Array]) -> pa.Array:
        """Back from codes."""
        return from_code(columns[0], self.target)


class Edge(State):
    """The value of the group's first or last row, null or not."""

    def __init__(self, measure: BoundMeasure) -> None:
        super().__init__(measure)
        self.how = ("first", "max") if measure.function == "first" else ("last", "max")

    def start(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Values, and which rows count."""
        assert self.measure.arg is not None
        if self.measure.where is None:
            counts = pa.repeat(pa.scalar(1, pa.int8()), batch.num_rows)
        else:
            mask = evaluate_mask(self.measure.where, batch)
            counts = pc.if_else(mask, pa.scalar(1, pa.int8()), pa.scalar(None, pa.int8()))
        return [evaluate(self.measure.arg, batch), counts]

    def finish(self, columns: list[pa.Array]) -> pa.Array:
        """As they are."""
        return columns[0]


class CountDistinct(State):
    """How many different values; they are gathered apart (`aggregate.py`) and counted at last."""

    how = ("sum",)

    def start(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Nothing here."""
        return [pa.nulls(batch.num_rows, pa.int64())]

    def finish(self, columns: list[pa.Array]) -> pa.Array:
        """Zero over no values."""
        return columns[0].fill_null(0)


def state_of(measure: BoundMeasure) -> State:
    """The state of a measure."""
    kinds: dict[str, type[State]] = {
        "count": Count,
        "count_distinct": CountDistinct,
        "sum": Sum,
        "min": Extreme,
        "max": Extreme,
        "mean": Mean,
        "first": Edge,
        "last": Edge,
    }
    return kinds[measure.function](measure)


def may_overflow(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether the sum of these longs can leave their range; cheap, and never wrongly false."""
    if at.is_decimal(column.type) or not len(column):
        return False
    limits = pc.min_max(column)
    low, high = limits["min"].as_py(), limits["max"].as_py()
    return low is not None and max(abs(low), abs(high)) * len(column) >= 1 << 63
