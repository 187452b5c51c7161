"""Random choices of rows that depend on the seed and on positions alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millpond.engine.arrow.best import Best
from millpond.engine.arrow.codes import Order
from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.source.spec import take
from millpond.engine.arrow.xxhash import position_hashes

if TYPE_CHECKING:
    from millpond.engine.arrow.context import Context
    from millpond.engine.arrow.operator import Steps


class SampleFraction(Operator):
    """Each row with the same chance, in order."""

    def __init__(self, source: Operator, seed: int, fraction: float) -> None:
        super().__init__(source)
        self.seed = seed
        self.fraction = fraction

    def run(self) -> Steps:
        """Batch by batch: a position's hash decides."""
        seen = 0
        while (batch := (yield self.inputs[0])) is not None:
            hashes = position_hashes(self.seed, seen, batch.num_rows).view(np.uint64)
            chances = (hashes >> np.uint64(11)) / float(1 << 53)
            seen += batch.num_rows
            kept = np.flatnonzero(chances < self.fraction)
            if len(kept) == batch.num_rows:
                yield batch
            elif len(kept):
                yield take(batch, kept)

    def describe(self) -> str:
        """The fraction and the seed."""
        return f"Sample {self.fraction} seed {self.seed}, by the hash of positions"


class SampleRows(Operator):
    """A number of rows, in order: those whose positions have the smallest hashes."""

    def __init__(self, source: Operator, seed: int, count: int, context: Context) -> None:
        super().__init__(source)
        self.seed = seed
        self.count = count
        self.context = context

    def run(self) -> Steps:
        """One pass that holds the chosen rows, with their positions in front."""
        best, seen = Best(self.count, [Order()]), 0
        while self.count and (batch := (yield self.inputs[0])) is not None:
            hashes = pa.array(position_hashes(self.seed, seen, batch.num_rows))
            positions = pa.array(np.arange(seen, seen + batch.num_rows))
            numbered = pa.RecordBatch.from_arrays(
                [positions, *batch.columns],
                schema=pa.schema([pa.field("", pa.int64()), *batch.schema]),
            )
            best.add([hashes], numbered)
            self.context.counters.peak(best.held)
            seen += batch.num_rows
            schema = batch.schema
        found = best.finish()
        if found is not None:
            order = np.argsort(found.column(0).to_numpy())
            chosen = take(found, order)
            yield pa.RecordBatch.from_arrays(chosen.columns[1:], schema=schema)

    def describe(self) -> str:
        """How many, and the seed."""
        return f"Sample {self.count} rows seed {self.seed}, by the hash of positions"
