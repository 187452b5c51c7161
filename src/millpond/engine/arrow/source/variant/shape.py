"""Which types of columns hold variants, whole or in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from millpond.engine.arrow.source.misfit import Misfit
from millpond.engine.arrow.source.variant.scalars import encoder, is_bytes
from millpond.plan.types import VARIANT, DataType, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

_PIECES = ("value", "typed_value")


def is_whole(array: pa.Array) -> bool:
    """Whether variants are stored without columns for parts of them, and none is missing."""
    if array.type.get_field_index("typed_value") >= 0:
        return False
    return bool(array.field("value").null_count <= array.null_count)


def check_variant(type_: pa.DataType, column: str) -> None:
    """Refuse a struct that is no variant, or a part that variants do not have."""
    members = _members(type_)
    if not is_bytes(members.pop("metadata", pa.null())):
        raise Misfit(column, f"is {type_}, which can't be read as variant")
    _check_group(type_, members, column)


def check_times(wanted: DataType, leaves: Iterable[Any]) -> None:
    """Refuse parts of variants that are times in 96 bits.

    They do not say whether they are instants, and pyarrow gives them as if they said no.
    """
    if not _holds_variant(wanted):
        return
    for leaf in leaves:
        if leaf.physical_type == "INT96" and leaf.name == "typed_value":
            raise Misfit(leaf.path, "has times in 96 bits, which variants do not hold")


def _holds_variant(type_: DataType) -> bool:
    if isinstance(type_, Struct):
        return any(_holds_variant(field.type) for field in type_)
    if isinstance(type_, List):
        return _holds_variant(type_.element)
    return _holds_variant(type_.value) if isinstance(type_, Map) else type_ == VARIANT


def _check_group(type_: pa.DataType, members: dict[str, pa.DataType], column: str) -> None:
    """Refuse what is not a value, a typed value, or both."""
    if (
        not members
        or not is_bytes(members.get("value", pa.binary()))
        or not members.keys() <= set(_PIECES)
    ):
        raise Misfit(column, f"is {type_}, which can't be read as variant")
    if "typed_value" in members:
        _check_typed(members["typed_value"], column)


def _check_typed(type_: pa.DataType, column: str) -> None:
    if at.is_struct(type_):
        for name, member in _members(type_).items():
            _check_piece(member, f"{column}.{name}")
    elif at.is_list(type_):
        _check_piece(type_.value_type, f"{column}[]")
    elif encoder(type_) is None:
        raise Misfit(column, f"has {type_} for a part of it, which variants do not hold")


def _check_piece(type_: pa.DataType, column: str) -> None:
    if not at.is_struct(type_):
        raise Misfit(column, f"is {type_}, which can't be a part of a variant")
    _check_group(type_, _members(type_), column)


def _members(type_: pa.DataType) -> dict[str, pa.DataType]:
    return {type_.field(i).name: type_.field(i).type for i in range(type_.num_fields)}
