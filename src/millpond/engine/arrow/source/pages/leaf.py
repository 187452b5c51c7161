"""What has to be known of a column to read it out of its pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.types as at

from millpond.engine.arrow.source.pages.levels import validity

if TYPE_CHECKING:
    import numpy as np
    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from millpond.engine.arrow.source.leaves import Place

_TEXTS: Final = {
    pa.string(): pa.string(),
    pa.large_string(): pa.string(),
    pa.binary(): pa.binary(),
    pa.large_binary(): pa.binary(),
}
_WIDTHS: Final = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}


@dataclass(frozen=True, slots=True)
class StoredLeaf:
    """A leaf outside of lists whose values are stored as Arrow has them."""

    steps: tuple[str, ...]
    """The names that lead to it."""
    levels: tuple[int, ...]
    """From which definition level on each of them is there."""
    type: pa.DataType
    """Of the values that are read; texts have 32-bit offsets, whatever pyarrow would give them."""
    width: int | None
    """How many bytes a value takes; None for texts."""

    @classmethod
    def of(cls, column: pq.ColumnSchema, place: Place | None) -> StoredLeaf | None:
        """The leaf that a Parquet column and its place in the schema describe; None for others."""
        if place is None or column.max_repetition_level:
            return None
        if place.levels[-1] != column.max_definition_level:
            return None
        if column.physical_type == "BYTE_ARRAY" and place.type in _TEXTS:
            return cls(place.steps, place.levels, _TEXTS[place.type], None)
        width = _WIDTHS.get(column.physical_type)
        if width is None or not _is_as_stored(place.type, width):
            return None
        return cls(place.steps, place.levels, place.type, width)

    @property
    def top(self) -> int:
        """The definition level of a value that is there."""
        return self.levels[-1]

    def column(self, values: pa.Array, levels: NDArray[np.uint8] | None) -> pa.Array:
        """The column with these values in it: structs around them, null where levels say so."""
        for name, level in zip(self.steps[:0:-1], self.levels[-2::-1], strict=True):
            bits, nulls = validity(levels, level)
            type_ = pa.struct([pa.field(name, values.type)])
            values = pa.Array.from_buffers(type_, len(values), [bits], nulls, children=[values])
        return values


def _is_as_stored(type_: pa.DataType, width: int) -> bool:
    """Whether Arrow's values of a type are those of a file, byte by byte."""
    is_number = at.is_signed_integer(type_) or at.is_floating(type_)
    is_time = at.is_timestamp(type_) or at.is_date32(type_)
    return (is_number or is_time) and bool(type_.bit_width == 8 * width)
