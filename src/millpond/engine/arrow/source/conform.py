"""What a file holds, as the types that a plan wants: missing is null, narrower is widened.

Widened are whole numbers to wider ones, to `double` (up to 32 bits) and to decimals that hold
them, `float` to `double`, decimals to wider ones and `date` to `timestamp_ntz`. Timestamps of any
unit and zone become microseconds; nanoseconds are rounded down. A file need not say that bytes are
text, nor that whole numbers are of one or two bytes. All else is a `Misfit`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from millpond.base.errors import SchemaError
from millpond.engine.arrow.source.dense import dense
from millpond.engine.arrow.source.longtext import LONG, MOST_BYTES, TooLong
from millpond.engine.arrow.source.misfit import Misfit
from millpond.engine.arrow.source.variant import check_variant, is_whole, unshred
from millpond.plan import types as t
from millpond.plan.arrow import from_arrow, to_arrow

_VARIANT = t.Struct((t.Field("value", t.BINARY, False), t.Field("metadata", t.BINARY, False)))
"""What a whole variant is in a file; writers do not agree about the order."""
_WITHOUT_NOTE = ((t.INTEGER, t.BYTE), (t.INTEGER, t.SHORT), (t.BINARY, t.STRING))
"""What a file holds whose writer did not note the type: values that do not fit are an error."""


def check_fits(type_: pa.DataType, wanted: t.DataType, column: str) -> None:
    """Refuse a file's type that can't become the wanted one; only the type is looked at."""
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if isinstance(wanted, t.Struct) and at.is_struct(type_):
        for field in wanted:
            index = type_.get_field_index(field.name)
            if index >= 0:
                check_fits(type_.field(index).type, field.type, f"{column}.{field.name}")
    elif wanted == t.VARIANT and at.is_struct(type_):
        check_variant(type_, column)
    elif isinstance(wanted, t.List) and is_list(type_):
        check_fits(type_.value_type, wanted.element, f"{column}[]")
    elif isinstance(wanted, t.Map) and at.is_map(type_):
        check_fits(type_.key_type, wanted.key, f"{column}.key")
        check_fits(type_.item_type, wanted.value, f"{column}.value")
    elif not _widens(type_, wanted):
        raise Misfit(column, f"is {type_}, which can't be read as {wanted}")


@cache
def _widens(type_: pa.DataType, wanted: t.DataType) -> bool:
    if at.is_null(type_) or type_ == to_arrow(wanted):
        return True
    if at.is_timestamp(type_):
        return wanted in (t.TIMESTAMP, t.TIMESTAMP_NTZ)
    try:
        given = from_arrow(type_)
    except SchemaError:
        return False
    if given == wanted or (given, wanted) == (t.DATE, t.TIMESTAMP_NTZ):
        return True
    if wanted == t.DOUBLE:
        return given in (t.FLOAT, t.BYTE, t.SHORT, t.INTEGER)
    if isinstance(wanted, t.Decimal):
        exact = t.is_integral(given) or isinstance(given, t.Decimal)
        return exact and t.common_type(_narrowest(given), wanted) == wanted
    if (given, wanted) in _WITHOUT_NOTE:
        return True
    both_whole = t.is_integral(given) and t.is_integral(wanted)
    return both_whole and t.common_type(given, wanted) == wanted


def _narrowest(type_: t.DataType) -> t.DataType:
    # Long counts as 20 digits where it meets decimals; 19 hold it.
    return t.Decimal(19, 0) if type_ == t.LONG else type_


def conform(array: pa.Array, wanted: t.DataType, stored: t.DataType | None = None) -> pa.Array:
    """The array as the wanted type, which `check_fits` has found possible.

    `stored` is the wanted type with the names that its members have in the array.
    """
    stored = wanted if stored is None else stored
    target = to_arrow(wanted)
    # Members that are stored under each other's names look right and are not.
    if array.type == target and stored is wanted:
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        return conform(array.storage, wanted, stored)
    if at.is_null(array.type):
        return pa.nulls(len(array), target)
    if isinstance(wanted, t.Struct) and isinstance(stored, t.Struct):
        return _struct(array, wanted, stored)
    if wanted == t.VARIANT:
        return _variant(array)
    if isinstance(wanted, t.List) and isinstance(stored, t.List):
        return _list(array, wanted, stored)
    if isinstance(wanted, t.Map) and isinstance(stored, t.Map):
        return _map(array, wanted, stored)
    if at.is_dictionary(array.type) and wanted in (t.STRING, t.BINARY):
        return dense(array, target)
    if array.type in LONG.values() and array.nbytes > MOST_BYTES:
        raise TooLong
    if at.is_timestamp(array.type):
        return to_micros(array).view(target)
    if wanted == t.TIMESTAMP_NTZ:
        return array.cast(pa.timestamp("us"))
    return array.cast(target)


def to_micros(array: pa.Array) -> pa.Array:
    """Timestamps of any unit in microseconds, the zone as it was; nanoseconds rounded down."""
    if array.type.unit != "ns":
        return array.cast(pa.timestamp("us", tz=array.type.tz))
    raw = array.view(pa.int64())
    floored = np.floor_divide(raw.fill_null(0).to_numpy(zero_copy_only=False), 1000)
    micros = (
        pa.array(floored, mask=np.asarray(raw.is_null())) if raw.null_count else pa.array(floored)
    )
    return micros.view(pa.timestamp("us", tz=array.type.tz))


def _struct(array: pa.Array, wanted: t.Struct, stored: t.Struct) -> pa.Array:
    array = from_zero(array)
    children = []
    for field, place in zip(wanted, stored, strict=True):
        index = array.type.get_field_index(place.name)
        if index < 0:
            children.append(pa.nulls(len(array), to_arrow(field.type)))
        else:
            children.append(conform(array.field(index), field.type, place.type))
    validity = array.buffers()[0]
    return pa.Array.from_buffers(
        to_arrow(wanted), len(array), [validity], array.null_count, children=children
    )


def _variant(array: pa.Array) -> pa.Array:
    return _struct(array, _VARIANT, _VARIANT) if is_whole(array) else unshred(array)


def _list(array: pa.Array, wanted: t.List, stored: t.List) -> pa.Array:
    if not at.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    array = from_zero(array)
    values = conform(array.values, wanted.element, stored.element)
    target, buffers = to_arrow(wanted), [array.buffers()[0], array.buffers()[1]]
    return pa.Array.from_buffers(target, len(array), buffers, array.null_count, children=[values])


def _map(array: pa.Array, wanted: t.Map, stored: t.Map) -> pa.Array:
    array, target = from_zero(array), to_arrow(wanted)
    entry = target.field(0).type if target.num_fields == 1 else None
    entry = entry or pa.struct([target.key_field, target.item_field])
    keys = conform(array.keys, wanted.key, stored.key)
    children = [keys, conform(array.items, wanted.value, stored.value)]
    entries = pa.Array.from_buffers(entry, len(array.keys), [None], 0, children=children)
    buffers = [array.buffers()[0], array.buffers()[1]]
    return pa.Array.from_buffers(target, len(array), buffers, array.null_count, children=[entries])


def from_zero(array: pa.Array) -> pa.Array:
    """The array with its own buffers, so that they can be put together anew."""
    if array.offset == 0:
        return array
    return array.take(pa.array(np.arange(len(array))))


def is_list(type_: pa.DataType) -> bool:
    """Whether a type is a list of any layout."""
    kinds = (at.is_list, at.is_large_list, at.is_fixed_size_list)
    return any(is_kind(type_) for is_kind in kinds)
