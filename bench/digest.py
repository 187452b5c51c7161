"""What a result holds, in a few numbers: contenders that did the same work have the same ones.

Of every leaf of every column: how many values are there, and their sum (of texts: their bytes).
And once more with each row's position, so that the order of rows shows too.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable

_WRAP: Final = 1 << 64
_CLOSE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Digest:
    """Rows, `(values, sum)` by leaf, and the sum of the column `id` weighted by position."""

    rows: int
    leaves: dict[str, tuple[int, float]]
    order: int | None

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch]) -> Digest:
        """Read a result to its end."""
        rows, order = 0, None
        leaves: dict[str, tuple[int, float]] = {}
        for batch in batches:
            for name, count, total in _leaf_sums(batch):
                known = leaves.get(name, (0, 0))
                total += known[1]
                leaves[name] = (
                    known[0] + count,
                    total % _WRAP if isinstance(total, int) else total,
                )
            if "id" in batch.schema.names:
                order = ((order or 0) + _weighted(batch.column("id"), rows)) % _WRAP
            rows += batch.num_rows
        return cls(rows, dict(sorted(leaves.items())), order)

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Digest:
        """Back from plain data."""
        leaves = {name: (count, total) for name, (count, total) in found["leaves"].items()}
        return cls(found["rows"], leaves, found["order"])

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def difference(self, other: Digest, *, ordered: bool) -> str | None:
        """The first thing in which two results differ, for people."""
        if self.rows != other.rows:
            return f"{self.rows} rows, not {other.rows}"
        if self.leaves.keys() != other.leaves.keys():
            return f"columns {list(self.leaves)}, not {list(other.leaves)}"
        for name, (count, total) in self.leaves.items():
            count_there, total_there = other.leaves[name]
            if count != count_there or not math.isclose(total, total_there, rel_tol=_CLOSE):
                return f"{name} has {count} values of sum {total}, not {other.leaves[name]}"
        if ordered and self.order != other.order:
            return "the same rows in another order"
        return None


def _leaf_sums(batch: pa.RecordBatch) -> Iterable[tuple[str, int, float]]:
    todo = list(zip(batch.schema.names, batch.columns, strict=True))
    while todo:
        name, array = todo.pop()
        if pa.types.is_struct(array.type):
            inner = zip(array.type, array.flatten(), strict=True)
            todo.extend((f"{name}.{field.name}", child) for field, child in inner)
        elif pa.types.is_list(array.type):
            todo.append((f"{name}[]", array.flatten()))
        else:
            yield name, len(array) - array.null_count, _sum(array)


def _sum(array: pa.Array) -> float:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = pc.binary_length(array)
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", tz=array.type.tz)).cast(pa.int64())
    elif pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    total: float = pc.sum(array).as_py() or 0
    return total


def _weighted(ids: pa.Array, start: int) -> int:
    positions = np.arange(start + 1, start + 1 + len(ids), dtype=np.uint64)
    return int((positions * ids.to_numpy().astype(np.uint64)).sum(dtype=np.uint64))
