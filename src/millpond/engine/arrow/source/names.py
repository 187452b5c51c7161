"""Under which names a Parquet file holds what a plan wants: by field id, or by stored name.

What a file lacks gets a name that nothing in the file has. See `plan/stored_fields.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as at

from millpond.plan.stored_fields import is_renamed, stored_id, stored_name
from millpond.plan.types import DataType, Field, List, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

_ID = b"PARQUET:field_id"
_ABSENT = "\x00"
"""Before a name: what no file holds."""


class Names:
    """The names in one file."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    @cached_property
    def has_ids(self) -> bool:
        """Whether any field of the file has an id, at any depth."""
        todo = list(self._schema)
        while todo:
            field = todo.pop()
            if _id_of(field) is not None:
                return True
            todo += _members(field.type)
        return False

    def in_file(self, wanted: Struct) -> Struct:
        """The columns with the names that they and their members have in the file."""
        return self._struct(self._schema, wanted) if is_renamed(wanted) else wanted

    def _struct(self, fields: Iterable[pa.Field], wanted: Struct) -> Struct:
        by_name: dict[str, pa.Field] = {}
        by_id: dict[int | None, pa.Field] = {}
        for item in fields:
            by_name.setdefault(item.name, item)
            by_id.setdefault(_id_of(item), item)
        found = []
        for field in wanted:
            number = stored_id(field)
            by_number = number is not None and self.has_ids
            item = by_id.get(number) if by_number else by_name.get(stored_name(field))
            if item is None:
                found.append(Field(_ABSENT + field.name, field.type))
            else:
                found.append(Field(item.name, self._type(item.type, field.type), field.nullable))
        return Struct(tuple(found))

    def _type(self, type_: pa.DataType, wanted: DataType) -> DataType:
        if not is_renamed(wanted):
            return wanted
        members = _members(type_)
        if isinstance(wanted, Struct) and at.is_struct(type_):
            return self._struct(members, wanted)
        if isinstance(wanted, List) and len(members) == 1:
            return replace(wanted, element=self._type(members[0].type, wanted.element))
        if isinstance(wanted, Map) and at.is_map(type_):
            key, value = (
                self._type(member.type, part)
                for member, part in zip(members, (wanted.key, wanted.value), strict=True)
            )
            return replace(wanted, key=key, value=value)
        return wanted  # of another kind: whoever reads it says so


def stored_steps(steps: tuple[str, ...], wanted: DataType, stored: DataType) -> tuple[str, ...]:
    """A path of member names (`[]` for elements) of one type, in the names of the other."""
    found = []
    for step in steps:
        if isinstance(wanted, Struct) and isinstance(stored, Struct):
            at_ = wanted.position(step)
            if at_ is None:
                return steps
            found.append(stored.fields[at_].name)
            wanted, stored = wanted.fields[at_].type, stored.fields[at_].type
        elif isinstance(wanted, List) and isinstance(stored, List):
            found.append(step)
            wanted, stored = wanted.element, stored.element
        else:
            found.append(step)
            if isinstance(wanted, Map) and isinstance(stored, Map):
                wanted, stored = wanted.value, stored.value
    return tuple(found)


def _members(type_: pa.DataType) -> list[pa.Field]:
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if at.is_map(type_):
        return [type_.key_field, type_.item_field]
    if at.is_struct(type_):
        return [type_.field(i) for i in range(type_.num_fields)]
    return [type_.value_field] if hasattr(type_, "value_field") else []


def _id_of(field: pa.Field) -> int | None:
    found = (field.metadata or {}).get(_ID)
    return None if found is None else int(found)
