"""Columns that files hold under another name: two keys of a field's metadata, at any depth.

Scans keep the keys in their `columns`; the schema of their rows is without them (`logical`).

>>> from millpond.plan.types import LONG
>>> field = Field("level", LONG).with_metadata({STORED_NAME: "col-7", "comment": "in metres"})
>>> stored_name(field), stored_id(field), logical(Struct((field,))).field("level").metadata_dict()
('col-7', None, {'comment': 'in metres'})
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import Final

from millpond.base.errors import SchemaError
from millpond.plan.types import DataType, Field, List, Map, Struct

STORED_NAME: Final = "millpond.stored.name"
"""The name (text) that the field has in the files."""
STORED_ID: Final = "parquet.field.id"
"""The Parquet field id (whole number) by which files that have ids hold the field."""

_PLAIN: Final = "{}"
_MANY: Final = 4096


def stored_name(field: Field) -> str:
    """The name that the field has in files: its own, unless it says otherwise."""
    found = None if field.metadata == _PLAIN else _keys(field.metadata)[0]
    return field.name if found is None else found


def stored_id(field: Field) -> int | None:
    """The id that the field has in files, if it says so."""
    return None if field.metadata == _PLAIN else _keys(field.metadata)[1]


@lru_cache(_MANY)
def is_renamed(type_: DataType) -> bool:
    """Whether some field in this type says how files hold it."""
    if isinstance(type_, Struct):
        return any(_says(field) or is_renamed(field.type) for field in type_)
    if isinstance(type_, List):
        return is_renamed(type_.element)
    return isinstance(type_, Map) and (is_renamed(type_.key) or is_renamed(type_.value))


def has_stored_ids(type_: DataType) -> bool:
    """Whether some field in this type is found by its id."""
    if isinstance(type_, Struct):
        return any(stored_id(field) is not None or has_stored_ids(field.type) for field in type_)
    if isinstance(type_, List):
        return has_stored_ids(type_.element)
    return isinstance(type_, Map) and (has_stored_ids(type_.key) or has_stored_ids(type_.value))


@lru_cache(_MANY)
def logical(schema: Struct) -> Struct:
    """The schema without these keys: that of the rows that a scan gives."""
    found = _logical(schema)
    assert isinstance(found, Struct)
    return found


def check_stored(schema: Struct) -> None:
    """Refuse keys of a wrong kind, and two fields of one struct that are stored alike."""
    todo: list[DataType] = [schema] if is_renamed(schema) else []
    while todo:
        type_ = todo.pop()
        if isinstance(type_, List):
            todo.append(type_.element)
        elif isinstance(type_, Map):
            todo += [type_.key, type_.value]
        elif isinstance(type_, Struct):
            todo += [field.type for field in type_]
            _check_fields(type_)


def _check_fields(struct: Struct) -> None:
    seen: dict[str | int, str] = {}
    for field in struct:
        number = stored_id(field)
        keys: tuple[str | int, ...] = (stored_name(field),)
        for key in keys if number is None else (*keys, number):
            if seen.setdefault(key, field.name) != field.name:
                raise SchemaError(
                    f"{seen[key]!r} and {field.name!r} are both stored as {key!r}",
                    hint=f"each field of a struct has its own {STORED_NAME} and {STORED_ID}",
                )


@lru_cache(_MANY)
def _keys(metadata: str) -> tuple[str | None, int | None]:
    found = json.loads(metadata)
    name, number = found.get(STORED_NAME), found.get(STORED_ID)
    if not isinstance(name, str | None):
        raise SchemaError(f"{STORED_NAME} is a text, not {name!r}")
    if not isinstance(number, int | None) or isinstance(number, bool):
        raise SchemaError(f"{STORED_ID} is a whole number, not {number!r}")
    return name, number


def _says(field: Field) -> bool:
    return field.metadata != _PLAIN and _keys(field.metadata) != (None, None)


def _logical(type_: DataType) -> DataType:
    if not is_renamed(type_):
        return type_
    if isinstance(type_, Struct):
        return Struct(tuple(_logical_field(field) for field in type_))
    if isinstance(type_, List):
        return replace(type_, element=_logical(type_.element))
    assert isinstance(type_, Map)
    return replace(type_, key=_logical(type_.key), value=_logical(type_.value))


def _logical_field(field: Field) -> Field:
    made = replace(field, type=_logical(field.type))
    if not _says(field):
        return made
    kept = {k: v for k, v in field.metadata_dict().items() if k not in (STORED_NAME, STORED_ID)}
    return made.with_metadata(kept)
