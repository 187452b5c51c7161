"""Measures as states: rows of a group begin a state, and states of a group combine.

Rows are summed up, and partial results are merged, by one and the same step (`combine` in
`aggregate.py`), however many rounds that takes; only what it does with a column may differ.
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

How: TypeAlias = Literal["sum", "checked_sum", "count", "count_all", "min", "max", "first", "last"]
"""How a column is summed up; `first` and `last` go with a next one that says which rows count."""
Step: TypeAlias = tuple[int, How]
"""A column by its number, and how; `count_all` looks at none."""


class State:
    """One measure's state columns: how they begin, how they combine, what they come to."""

    how: tuple[How, ...] = ()
    begin: tuple[Step, ...] | None = None
    """How states are made of the columns of `start`; None: of each its own, as they combine."""

    def __init__(self, measure: BoundMeasure) -> None:
        self.measure = measure
        self.target = to_arrow(measure.type)

    def start(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """What the states of rows are made of."""
        raise NotImplementedError

    def steps(self, first: int) -> list[Step]:
        """How states begin if the first column of `start` has this number."""
        begin = enumerate(self.how) if self.begin is None else self.begin
        return [(first + column, how) for column, how in begin]

    @property
    def width(self) -> int:
        """How many columns `start` gives."""
        return len({column for column, how in self.steps(0) if how != "count_all"})

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

    def __init__(self, measure: BoundMeasure) -> None:
        super().__init__(measure)
        if measure.arg is None and measure.where is None:
            self.begin = ((0, "count_all"),)

    def start(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """One for each that counts; nothing where all do."""
        measure = self.measure
        if measure.arg is not None:
            return [self.values(batch).is_valid().cast(pa.int64())]
        if measure.where is not None:
            return [evaluate_mask(measure.where, batch).cast(pa.int64())]
        return []

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
        self.type: pa.DataType | None = None
        if isinstance(given, Decimal):
            # With ten digits to spare no number of rows overflows; otherwise twice the digits do.
            wide = given.precision > 28
            self.type = pa.decimal256(76, given.scale) if wide else pa.decimal128(38, given.scale)

    def start(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The values; adding makes longs of whole numbers and doubles of fractions by itself."""
        values = self.values(batch)
        return [values if self.type is None else values.cast(self.type)]

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
    begin = ((0, "sum"), (0, "count"))

    def start(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The values, for sum and count."""
        return [self.values(batch)]

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
    """Whether a sum of whole numbers can leave a long's range; cheap, and never wrongly false."""
    if at.is_decimal(column.type) or not len(column):
        return False
    if column.type.bit_width < 64 and len(column) < 1 << 32:
        return False  # Not even if all were the largest there are.
    limits = pc.min_max(column)
    low, high = limits["min"].as_py(), limits["max"].as_py()
    return low is not None and max(abs(low), abs(high)) * len(column) >= 1 << 63
