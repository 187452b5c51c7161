"""What has to be known of a column chunk of texts to look them up in its pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_PICKED = {
    pa.string(): pa.string(),
    pa.large_string(): pa.string(),
    pa.binary(): pa.binary(),
    pa.large_binary(): pa.binary(),
}


@dataclass(frozen=True, slots=True)
class TextLeaf:
    """A leaf outside of lists whose texts are as Arrow has them."""

    steps: tuple[str, ...]
    """The names that lead to it."""
    type: pa.DataType
    """Of the texts that are picked: `string` or `binary`, whatever the whole column would be."""
    levels: int
    """The definition level of a text that is there."""

    @classmethod
    def of(
        cls, column: pq.ColumnSchema, steps: tuple[str, ...], type_: pa.DataType
    ) -> TextLeaf | None:
        """The leaf that a Parquet column and its type in Arrow describe; None if it is no such."""
        if column.max_repetition_level or column.physical_type != "BYTE_ARRAY":
            return None
        picked = _PICKED.get(type_)
        return None if picked is None else cls(steps, picked, column.max_definition_level)


def has_nulls(chunk: Any) -> bool:
    """Whether some text of a chunk is missing, as far as its statistics tell."""
    # Of a chunk that calls itself something else, pyarrow would end the process here.
    found = chunk.statistics if chunk.physical_type == "BYTE_ARRAY" else None
    return found is None or not found.has_null_count or bool(found.null_count)
