"""Casts: which conversion stands between two types, and what happens to values that do not fit.

Every conversion gives null for what does not fit. A cast that has to fail compares the nulls before
and after, so that both kinds of cast share one path and good data pays one comparison.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.engine.arrow.eval.cast_numbers import convert_number
from millpond.engine.arrow.eval.dates import DAY
from millpond.engine.arrow.eval.elements import spread
from millpond.engine.arrow.eval.format import to_text
from millpond.engine.arrow.eval.parse import from_text
from millpond.engine.arrow.eval.values import fail, from_raw, null_mask, raw, show
from millpond.plan.arrow import to_arrow
from millpond.plan.bound import BoundCast
from millpond.plan.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    List,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.engine.arrow.eval.values import Value
    from millpond.plan.bound import BoundExpr

_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def cast(expr: BoundExpr, args: Sequence[Value]) -> Value:
    """A column as another type."""
    assert isinstance(expr, BoundCast)
    return _cast(expr, args[0], expr.arg.type, expr.type)


def _cast(expr: BoundCast, column: pa.Array, source: DataType, target: DataType) -> pa.Array:
    if isinstance(source, List) and isinstance(target, List):
        parts = spread(column).visible()
        values = _cast(expr, parts.values, source.element, target.element)
        return parts.gather(values, to_arrow(target))
    result = convert(column, source, target)
    if expr.on_error == "error" and result.null_count > column.null_count:
        bad = column.filter(pc.and_(result.is_null(), column.is_valid())).slice(0, 1)
        raise fail(
            expr,
            f"{_shown(bad, source)} is not a {target}",
            hint='use cast(..., on_error="null") to get null for such values',
        )
    return result


def _shown(value: pa.Array, source: DataType) -> str:
    """A bad value. Dates may lie outside what Python holds, so they are written as a cast would."""
    return show((value if source == STRING else convert(value, source, STRING))[0].as_py())


def convert(column: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """A column of one scalar type as another; what does not fit is null."""
    if source == target:
        return column
    if source == NULL:
        return pa.nulls(len(column), to_arrow(target))
    if target == STRING:
        return to_text(column, source)
    if source == STRING:
        return column.cast(pa.binary()) if target == BINARY else from_text(column, target)
    if target in _TIMES:
        return _convert_time(column, source, target)
    if target == BOOLEAN:
        zero = Decimal(0) if pa.types.is_decimal(column.type) else 0
        return pc.not_equal(column, pa.scalar(zero, column.type))
    if source == BOOLEAN:
        return convert_number(column.cast(pa.int8()), BYTE, target)
    return convert_number(column, source, target)


def _convert_time(column: pa.Array, source: DataType, target: DataType) -> pa.Array:
    if target == DATE:
        days = (raw(column) // DAY).astype(np.int32)
        return from_raw(days, pa.date32(), null_mask(column))
    if source != DATE:
        return column.view(to_arrow(target))
    days = raw(column).astype(np.int64)
    mask = null_mask(column)
    limit = (1 << 63) // DAY
    outside = np.abs(days) > limit
    if outside.any():
        mask = outside if mask is None else mask | outside
    return from_raw(days * DAY, to_arrow(target), mask)
