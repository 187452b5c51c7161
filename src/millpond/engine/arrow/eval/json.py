"""JSON text as values (see docs/expressions.md). Regular text is read by Arrow in one go.

What Arrow refuses (a member of another type, text that is not JSON) is read by `json_exact.py`, for
the whole column, since Arrow does not say which row it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.elements import spread
from millpond.engine.arrow.eval.json_exact import read_exactly
from millpond.engine.arrow.eval.layout import conform
from millpond.engine.arrow.eval.parse import moments
from millpond.engine.arrow.eval.values import all_true
from millpond.plan.arrow import to_arrow
from millpond.plan.types import (
    BOOLEAN,
    DATE,
    FRACTIONAL,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    Struct,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.engine.arrow.eval.values import Value
    from millpond.plan.bound import BoundExpr

_AS_THEY_ARE: Final = (BOOLEAN, *INTEGRAL, *FRACTIONAL, STRING)
_TIMES: Final = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_ONE_OBJECT: Final = r"^[ \t]*\{[^\n\r]*\}[ \t]*$"


def parse_json(expr: BoundExpr, args: Sequence[Value]) -> Value:
    """A column of JSON text as structs, lists, maps or scalars."""
    column = args[0]
    if isinstance(expr.type, Struct) and _is_regular(expr.type):
        texts = column.drop_null() if column.null_count else column
        parsed = _read_regular(texts, expr.type)
        if parsed is not None:
            return _with_nulls(parsed, column)
    return read_exactly(column, expr.type)


def _is_regular(type_: DataType) -> bool:
    """Whether Arrow's reader gives values of this type the same meaning."""
    if isinstance(type_, Struct):
        kinds = [field.type for field in type_.fields]
        return bool(kinds) and all(kind in _TIMES or _is_regular(kind) for kind in kinds)
    if isinstance(type_, List):
        return _is_regular(type_.element)
    return isinstance(type_, Decimal) or type_ in _AS_THEY_ARE


def _read_regular(texts: pa.Array, type_: Struct) -> pa.Array | None:
    """The texts as structs, or None where one of them needs the exact reader."""
    import pyarrow.json as pj

    if len(texts) == 0:
        return pa.array([], to_arrow(type_))
    # Each text holds at least one object and no line's end: as many rows as texts means one each.
    if not all_true(pc.match_substring_regex(texts, _ONE_OBJECT)):
        return None
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "\n")[0].as_buffer()
    schema = pa.schema([pa.field(f.name, _readable(f.type)) for f in type_.fields])
    try:
        table = pj.read_json(
            pa.BufferReader(lines),
            pj.ReadOptions(use_threads=False, block_size=lines.size + 1),
            pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(texts):
        return None
    columns = [_finished(table.column(f.name).combine_chunks(), f.type) for f in type_.fields]
    return pa.StructArray.from_arrays(columns, fields=list(to_arrow(type_)))


def _readable(type_: DataType) -> pa.DataType:
    """The type that Arrow reads: times come as text, since Arrow knows fewer forms of them."""
    if isinstance(type_, Struct):
        return pa.struct([pa.field(f.name, _readable(f.type)) for f in type_.fields])
    if isinstance(type_, List):
        return pa.list_(_readable(type_.element))
    return pa.string() if type_ in _TIMES else to_arrow(type_)


def _finished(array: pa.Array, type_: DataType) -> pa.Array:
    """What Arrow read, as the type that was asked for."""
    if type_ in _TIMES:
        return moments(array, type_, zones=type_ != TIMESTAMP_NTZ)
    if isinstance(type_, Struct):
        columns = [_finished(array.field(i), f.type) for i, f in enumerate(type_.fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(columns, fields=list(to_arrow(type_)), mask=mask)
    if isinstance(type_, List):
        parts = spread(array)
        return parts.gather(_finished(parts.values, type_.element), to_arrow(type_))
    return conform(array, to_arrow(type_))


def _with_nulls(parsed: pa.Array, column: pa.Array) -> pa.Array:
    """The values of the texts that are there, back in row order between nulls."""
    if not column.null_count:
        return parsed
    present = column.is_valid().to_numpy(zero_copy_only=False)
    at = np.cumsum(present) - 1
    return parsed.take(pa.array(at, mask=~present))
