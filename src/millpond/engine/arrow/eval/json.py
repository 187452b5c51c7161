"""JSON text as values (see docs/expressions.md): a fast, strict reader, then an exact one.

Texts are read piece by piece with `json_typed.py`. A piece in which a text does not fit strictly
(a number where text is wanted, half a surrogate pair, text that is not JSON) is read once more, by
`json_exact.py`: slowly, but it has an answer to everything. Where text fits, both give the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from millpond.engine.arrow.eval.json_exact import read_exactly
from millpond.engine.arrow.eval.json_typed import read_typed
from millpond.plan.arrow import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millpond.engine.arrow.eval.values import Value
    from millpond.plan.bound import BoundExpr
    from millpond.plan.types import DataType

PIECE: Final = 4096
"""So many texts are read at once: their values stay in the processor's cache, and a text that does
not fit makes only its piece slow."""


class Piece(NamedTuple):
    """Some texts and their values; if they were read strictly, each text is what its type says.

    Then the texts need not be there.
    """

    texts: pa.Array | None
    values: pa.Array
    is_strict: bool


def parse_json(expr: BoundExpr, args: Sequence[Value]) -> Value:
    """A column of JSON text as structs, lists, maps or scalars."""
    column = args[0]
    texts = column.drop_null() if column.null_count else column
    values = [piece.values for piece in read_pieces(texts, expr.type)]
    parsed = pa.concat_arrays(values) if values else pa.array([], to_arrow(expr.type))
    return _with_nulls(parsed, column)


def read_pieces(texts: pa.Array, type_: DataType) -> Iterator[Piece]:
    """The values of texts, of which none is null."""
    for start in range(0, len(texts), PIECE):
        piece = texts.slice(start, PIECE)
        values = read_typed(piece, type_)
        if values is not None:
            yield Piece(piece, values, is_strict=True)
        else:
            yield Piece(piece, read_exactly(piece, type_), is_strict=False)


def _with_nulls(parsed: pa.Array, column: pa.Array) -> pa.Array:
    """The values of the texts that are there, back in row order between nulls."""
    if not column.null_count:
        return parsed
    present = column.is_valid().to_numpy(zero_copy_only=False)
    at = np.cumsum(present) - 1
    return parsed.take(pa.array(at, mask=~present))
