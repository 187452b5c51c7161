"""Which types of columns hold variants, whole or in pieces."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as at

from millpond.engine.arrow.source.misfit import Misfit
from millpond.engine.arrow.source.variant.scalars import encoder

_PIECES = ("value", "typed_value")


def is_whole(type_: pa.DataType) -> bool:
    """Whether a variant is stored without columns of its own for parts of it."""
    return bool(type_.get_field_index("typed_value") < 0)


def check_variant(type_: pa.DataType, column: str) -> None:
    """Refuse a struct that is no variant, or a part that variants do not have."""
    members = _members(type_)
    if members.pop("metadata", None) != pa.binary():
        raise Misfit(column, f"is {type_}, which can't be read as variant")
    _check_group(type_, members, column)


def _check_group(type_: pa.DataType, members: dict[str, pa.DataType], column: str) -> None:
    """Refuse what is not a value, a typed value, or both."""
    binary = members.get("value", pa.binary()) == pa.binary()
    if not members or not binary or not members.keys() <= set(_PIECES):
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
