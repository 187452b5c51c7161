"""Types as Delta's schema JSON and back: the form in `metaData.schemaString`, and our wire form.

>>> from millpond.plan.types import LONG, List, Struct
>>> text = schema_to_json(Struct.of(a=LONG, b=List(LONG)))
>>> schema_from_json(text) == Struct.of(a=LONG, b=List(LONG))
True
"""

from __future__ import annotations

import json
import re
from typing import Any

from millpond.base.errors import PlanError, SchemaError
from millpond.plan.types import (
    PRIMITIVE_NAMES,
    DataType,
    Decimal,
    Field,
    List,
    Map,
    Primitive,
    Struct,
)

MAX_DEPTH = 100
"""Schemas nested deeper than this are refused: no real one is, and hostile ones are."""

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


def type_to_dict(type_: DataType) -> Any:
    """A type as plain JSON data."""
    if isinstance(type_, Struct):
        return {"type": "struct", "fields": [_field_to_dict(f) for f in type_.fields]}
    if isinstance(type_, List):
        return {
            "type": "array",
            "elementType": type_to_dict(type_.element),
            "containsNull": type_.contains_null,
        }
    if isinstance(type_, Map):
        return {
            "type": "map",
            "keyType": type_to_dict(type_.key),
            "valueType": type_to_dict(type_.value),
            "valueContainsNull": type_.contains_null,
        }
    return str(type_)


def _field_to_dict(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": type_to_dict(field.type),
        "nullable": field.nullable,
        "metadata": field.metadata_dict(),
    }


def type_from_dict(data: Any, *, depth: int = 0) -> DataType:
    """A type from plain JSON data; what is not a type is an error that shows it."""
    if depth > MAX_DEPTH:
        raise SchemaError(f"a schema nested deeper than {MAX_DEPTH} levels is refused")
    if isinstance(data, str):
        return _from_name(data)
    kind = data.get("type") if isinstance(data, dict) else None
    try:
        if kind == "struct":
            return Struct(tuple(_field_from_dict(f, depth + 1) for f in data["fields"]))
        if kind == "array":
            element = type_from_dict(data["elementType"], depth=depth + 1)
            return List(element, bool(data.get("containsNull", True)))
        if kind == "map":
            key = type_from_dict(data["keyType"], depth=depth + 1)
            value = type_from_dict(data["valueType"], depth=depth + 1)
            return Map(key, value, bool(data.get("valueContainsNull", True)))
    except PlanError:
        raise
    except KeyError as error:
        raise SchemaError(f"a {kind} type lacks its {error.args[0]!r}") from error
    except (TypeError, AttributeError) as error:
        raise SchemaError(f"not a {kind} type: {json.dumps(data)[:200]}") from error
    raise SchemaError(f"not a type: {json.dumps(data)[:200]}")


def _from_name(name: str) -> DataType:
    if name == "decimal":
        return Decimal(10, 0)
    match = _DECIMAL.fullmatch(name)
    if match:
        return Decimal(int(match[1]), int(match[2]))
    if name not in PRIMITIVE_NAMES:
        known = ", ".join(sorted(PRIMITIVE_NAMES))
        raise SchemaError(f"unknown type {name!r}", hint=f"known: {known}, decimal(p,s)")
    return Primitive(name)


def _field_from_dict(data: dict[str, Any], depth: int) -> Field:
    try:
        type_ = type_from_dict(data["type"], depth=depth)
    except SchemaError as error:
        within = f"column {data.get('name')!r}: {error.message}"
        raise SchemaError(within, hint=error.hint) from error
    field = Field(data["name"], type_, bool(data.get("nullable", True)))
    metadata = data.get("metadata")
    if not isinstance(metadata, dict | None):
        raise SchemaError(f"the metadata of {field.name!r} is not an object: {metadata!r}")
    return field.with_metadata(metadata) if metadata else field


def schema_to_json(schema: Struct) -> str:
    """A schema as Delta's JSON text."""
    return json.dumps(type_to_dict(schema), ensure_ascii=False, separators=(",", ":"))


def schema_from_json(text: str) -> Struct:
    """A schema from Delta's JSON text."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise SchemaError(f"a schema is not valid JSON: {error}") from error
    except RecursionError as error:
        raise SchemaError(f"a schema nested deeper than {MAX_DEPTH} levels is refused") from error
    found = type_from_dict(data)
    if not isinstance(found, Struct):
        raise SchemaError(f"a schema is a struct, not {found}")
    return found
