"""Stateful functions: arguments are computed by the batch, the function is called row by row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millpond.base.errors import EvaluationError, MillpondError
from millpond.engine.arrow.eval import evaluate, evaluate_mask
from millpond.engine.arrow.operator import Operator
from millpond.engine.arrow.source.batch import batch_of
from millpond.engine.arrow.source.files import ENGINE
from millpond.plan.arrow import to_arrow
from millpond.plan.types import Field, Struct

if TYPE_CHECKING:
    from millpond.engine.arrow.operator import Steps
    from millpond.plan.python import StatefulInstance
    from millpond.plan.streams import StatefulFunction, StatefulMapping


class CallStateful(Operator):
    """Columns added by functions that are called once a row, in order, and remember."""

    def __init__(self, source: Operator, node: StatefulFunction) -> None:
        super().__init__(source)
        self.fields = node.input.schema.fields
        self.mappings = node.mappings

    def run(self) -> Steps:
        """Batch by batch; the state lives as long as the run."""
        calls = [Call(mapping) for mapping in self.mappings]
        seen = 0
        while (batch := (yield self.inputs[0])) is not None:
            fields = self.fields
            for call in calls:
                column = call.column(batch, seen)
                fields = (*fields, Field(call.mapping.name, call.mapping.type))
                batch = batch_of([*batch.columns, column], Struct(fields), batch.num_rows)
            seen += batch.num_rows
            yield batch

    def describe(self) -> str:
        """The calls."""
        return f"CallStateful {', '.join(map(str, self.mappings))}"


class Call:
    """One mapping's states, by partition key."""

    def __init__(self, mapping: StatefulMapping) -> None:
        self.mapping = mapping
        self.type = to_arrow(mapping.type)
        self._instances: dict[tuple[Any, ...], StatefulInstance] = {}

    def column(self, batch: pa.RecordBatch, seen: int) -> pa.Array:
        """The results for a batch that follows `seen` rows."""
        rows = batch.num_rows
        args = self._rows([evaluate(arg, batch).to_pylist() for arg in self.mapping.args], rows)
        keys = [
            [_key(value) for value in evaluate(key, batch).to_pylist()]
            for key in self.mapping.partition_by
        ]
        accepts = [True] * rows
        if self.mapping.where is not None:
            accepts = evaluate_mask(self.mapping.where, batch).to_pylist()
        results = []
        for row, (given, key, accept) in enumerate(
            zip(args, self._rows(keys, rows), accepts, strict=True)
        ):
            results.append(self._one(given, key, accept=accept, row=seen + row))
        return self._typed(results, seen)

    @staticmethod
    def _rows(columns: list[list[Any]], rows: int) -> list[tuple[Any, ...]]:
        return list(zip(*columns, strict=True)) if columns else [()] * rows

    def _one(self, args: tuple[Any, ...], key: tuple[Any, ...], *, accept: bool, row: int) -> Any:
        try:
            instance = self._instances.get(key)
            if instance is None:
                instance = self._instances[key] = self.mapping.function.create_instance()
            return instance.eval(args, accept=accept)
        except MillpondError:
            raise
        except Exception as error:
            raise EvaluationError(
                f"{self.mapping.function.name} failed at row {row}: "
                f"{type(error).__name__}: {error}",
                engine=ENGINE,
            ) from error

    def _typed(self, results: list[Any], seen: int) -> pa.Array:
        try:
            return pa.array(results, self.type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            pass_on = self._first_unfit(results)
            raise EvaluationError(
                f"{self.mapping.function.name} gave {results[pass_on]!r} at row {seen + pass_on}, "
                f"which is not a {self.mapping.type}",
                engine=ENGINE,
            ) from None

    def _first_unfit(self, results: list[Any]) -> int:
        for row, value in enumerate(results):
            try:
                pa.array([value], self.type)
            except (pa.ArrowException, OverflowError, TypeError, ValueError):
                return row
        return 0


def _key(value: Any) -> Any:
    """A partition key by which equal values meet: NaN with NaN, `-0.0` with `0.0`."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value
