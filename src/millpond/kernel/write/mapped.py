"""Schemas of tables that map columns: every field gets an id and a physical name."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import SchemaError
from millpond.kernel.mapping import FIELD_ID, PHYSICAL_NAME
from millpond.kernel.write.protocol import MAPPING_MODE
from millpond.plan.types import DataType, Field, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_COLUMN_ID: Final = "delta.columnMapping.maxColumnId"
ANNOTATIONS: Final = (FIELD_ID, PHYSICAL_NAME)


def is_mapped(configuration: Mapping[str, str]) -> bool:
    """Whether files know columns by physical names."""
    return configuration.get(MAPPING_MODE, "none").lower() != "none"


def with_physical_names(
    schema: Struct, configuration: Mapping[str, str], *, keep_names: bool = False
) -> tuple[Struct, dict[str, str]]:
    """A schema in which every field has an id and a physical name, where the table maps columns.

    With `keep_names`, fields without one are stored by their own name: as files have them already.
    """
    found = dict(configuration)
    if not is_mapped(found):
        return schema, found
    counter = _Counter(max([int(found.get(MAX_COLUMN_ID, 0)), *_ids(schema)]))
    name = (lambda field: field.name) if keep_names else _random_name
    made = _mapped(schema, counter, name)
    assert isinstance(made, Struct)
    found[MAX_COLUMN_ID] = str(counter.last)
    return made, found


def check_mode_change(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Whether mapping begins with this change; a change that files do not allow is an error."""
    before, after = (c.get(MAPPING_MODE, "none").lower() for c in (old, new))
    if before == after:
        return False
    if (before, after) != ("none", "name"):
        raise SchemaError(
            f"{MAPPING_MODE} can't change from {before} to {after}: files are there already",
            hint="it can be set to name where it was none; id only when a table is created",
        )
    return True


def unmapped(field: Field) -> Field:
    """A field without ids and physical names, at every depth."""
    metadata = {k: v for k, v in field.metadata_dict().items() if k not in ANNOTATIONS}
    return replace(field, type=_unmapped_type(field.type)).with_metadata(metadata)


def _unmapped_type(type_: DataType) -> DataType:
    if isinstance(type_, Struct):
        return Struct(tuple(map(unmapped, type_)))
    if isinstance(type_, List):
        return replace(type_, element=_unmapped_type(type_.element))
    if isinstance(type_, Map):
        key, value = _unmapped_type(type_.key), _unmapped_type(type_.value)
        return replace(type_, key=key, value=value)
    return type_


class _Counter:
    def __init__(self, last: int) -> None:
        self.last = last

    def next(self) -> int:
        self.last += 1
        return self.last


def _random_name(field: Field) -> str:
    del field
    return f"col-{uuid.uuid4()}"


def _ids(type_: DataType) -> list[int]:
    if isinstance(type_, Struct):
        own = [f.metadata_dict().get(FIELD_ID) for f in type_]
        return [i for i in own if isinstance(i, int)] + [i for f in type_ for i in _ids(f.type)]
    if isinstance(type_, List):
        return _ids(type_.element)
    return _ids(type_.key) + _ids(type_.value) if isinstance(type_, Map) else []


def _mapped(type_: DataType, counter: _Counter, name: Callable[[Field], str]) -> DataType:
    if isinstance(type_, Struct):
        return Struct(tuple(_mapped_field(field, counter, name) for field in type_))
    if isinstance(type_, List):
        return replace(type_, element=_mapped(type_.element, counter, name))
    if isinstance(type_, Map):
        key, value = (_mapped(inner, counter, name) for inner in (type_.key, type_.value))
        return replace(type_, key=key, value=value)
    return type_


def _mapped_field(field: Field, counter: _Counter, name: Callable[[Field], str]) -> Field:
    known: dict[str, Any] = field.metadata_dict()
    if FIELD_ID not in known or PHYSICAL_NAME not in known:
        known = {**known, FIELD_ID: counter.next(), PHYSICAL_NAME: name(field)}
    return replace(field, type=_mapped(field.type, counter, name)).with_metadata(known)
