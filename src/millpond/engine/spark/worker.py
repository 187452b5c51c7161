"""What runs in Spark's Python workers: row filters and stateful functions over ordered batches.

Both classes go to the workers by value, and so do definitions from a user's own module: a worker
may not be able to import either. Definitions that this package brings need it on the workers.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from millpond.engine.spark.batches import conform, keep

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from millpond.plan.python import StatefulInstance

_PACKING: Final = threading.Lock()


def pack(definition: Any) -> bytes:
    """A definition as bytes that a worker can read.

    Which modules go by value is one list for all threads, so they pack one after the other.
    """
    pickler = _cloudpickle()
    module = sys.modules.get(type(definition).__module__)
    with _PACKING:
        by_value = (
            module is not None
            and module.__name__ != "__main__"
            and module.__name__.partition(".")[0] not in ("millpond", "builtins")
            and module.__name__ not in pickler.list_registry_pickle_by_value()
        )
        if not by_value:
            return bytes(pickler.dumps(definition))
        pickler.register_pickle_by_value(module)
        try:
            return bytes(pickler.dumps(definition))
        finally:
            pickler.unregister_pickle_by_value(module)


def send_by_value() -> None:
    """Let PySpark send this module's classes with their code."""
    from millpond.engine.spark import batches

    pickler = _cloudpickle()
    for module in (sys.modules[__name__], batches):
        pickler.register_pickle_by_value(module)


def unpack(packed: bytes) -> Any:
    """What `pack` was given."""
    return _cloudpickle().loads(packed)


def _cloudpickle() -> Any:
    from pyspark import cloudpickle

    return cloudpickle


@dataclass(frozen=True, slots=True)
class FilterRows:
    """A row filter over the batches of one ordered partition."""

    name: str
    packed: bytes
    columns: tuple[str, ...]
    schema: pa.Schema
    """Of these columns, as the plan says."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that are kept."""
        run = unpack(self.packed).open()
        for batch in batches:
            seen = conform(batch.select(list(self.columns)), self.schema)
            kept = keep(batch, run.apply(seen), by=self.name)
            if kept.num_rows:
                yield kept
        run.finish()


@dataclass(frozen=True, slots=True)
class StatefulCall:
    """One mapping: where its arguments and its filter stand in a batch, and what it gives."""

    packed: bytes
    args: tuple[str, ...]
    where: str | None
    result: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class CallStateful:
    """Stateful functions over batches that are sorted by key and then by the rows' order."""

    calls: tuple[StatefulCall, ...]
    keys: tuple[str, ...]
    carried: tuple[str, ...]
    """The columns of the result that are there already."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows with the results as further columns."""
        import pyarrow as pa

        definitions = [unpack(call.packed) for call in self.calls]
        current: tuple[Any, ...] | None = None
        instances: list[StatefulInstance] = []
        for batch in batches:
            keys = list(zip(*(_hashable(batch.column(key)) for key in self.keys), strict=True))
            columns = [
                (_rows(batch, call.args), _accepts(batch, call.where)) for call in self.calls
            ]
            results: list[list[Any]] = [[] for _ in self.calls]
            for row in range(batch.num_rows):
                key = keys[row] if self.keys else ()
                if key != current:
                    # Keys come one after the other: the state of the last one is done with.
                    current = key
                    instances = [definition.create_instance() for definition in definitions]
                for at, instance in enumerate(instances):
                    args, accepts = columns[at]
                    results[at].append(instance.eval(args[row], accept=accepts[row]))
            arrays = [batch.column(name) for name in self.carried]
            arrays += [
                pa.array(result, call.type)
                for result, call in zip(results, self.calls, strict=True)
            ]
            names = [*self.carried, *(call.result for call in self.calls)]
            yield pa.RecordBatch.from_arrays(arrays, names=names)


def _rows(batch: pa.RecordBatch, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    if not names:
        return [()] * batch.num_rows
    return list(zip(*(batch.column(name).to_pylist() for name in names), strict=True))


def _accepts(batch: pa.RecordBatch, name: str | None) -> list[bool]:
    if name is None:
        return [True] * batch.num_rows
    return [value is True for value in batch.column(name).to_pylist()]


def _hashable(column: pa.Array) -> list[Any]:
    """Values that compare as keys do: NaN equals NaN."""
    return ["NaN" if value != value else value for value in column.to_pylist()]
