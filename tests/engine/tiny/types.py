"""Types and schemas as the tiny engine keeps them: what its `SchemaVisitor` made of the calls.

Inside the engine a value is a Python value; dates are days, timestamps microseconds since 1970, so
that the whole range of the types is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millpond.plan.visitor import SchemaVisitor

BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}


@dataclass(frozen=True)
class Type:
    kind: str
    fields: tuple[Field, ...] = ()
    precision: int = 0
    scale: int = 0

    @property
    def element(self) -> Type:
        return self.fields[0].type


@dataclass(frozen=True)
class Field:
    name: str
    type: Type
    nullable: bool


class TinySchemas(SchemaVisitor):
    """Collects fields in lists; the id of a list is its position."""

    engine = "tiny"

    def __init__(self) -> None:
        self.lists: list[list[Field]] = []

    def make_field_list(self, reserve: int) -> int:
        self.lists.append([])
        return len(self.lists) - 1

    def type(self, type_id: int) -> Type:
        (field,) = self.lists[type_id]
        return field.type

    def _add(self, kind: str, to: int, name: str, nullable: bool, children: int = -1) -> None:
        below = () if children < 0 else tuple(self.lists[children])
        self.lists[to].append(Field(name, Type(kind, below), nullable))

    def visit_void(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        self._add("void", sibling_list_id, name, nullable)

    def visit_boolean(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        self._add("boolean", sibling_list_id, name, nullable)

    def visit_byte(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        self._add("byte", sibling_list_id, name, nullable)

    def visit_short(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        self._add("short", sibling_list_id, name, nullable)

    def visit_integer(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        self._add("integer", sibling_list_id, name, nullable)

    def visit_long(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        self._add("long", sibling_list_id, name, nullable)

    def visit_float(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        self._add("float", sibling_list_id, name, nullable)

    def visit_double(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        self._add("double", sibling_list_id, name, nullable)

    def visit_string(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        self._add("string", sibling_list_id, name, nullable)

    def visit_binary(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        self._add("binary", sibling_list_id, name, nullable)

    def visit_date(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        self._add("date", sibling_list_id, name, nullable)

    def visit_timestamp(
        self, sibling_list_id: int, name: str, nullable: bool, metadata: str
    ) -> None:
        self._add("timestamp", sibling_list_id, name, nullable)

    def visit_timestamp_ntz(
        self, sibling_list_id: int, name: str, nullable: bool, metadata: str
    ) -> None:
        self._add("timestamp_ntz", sibling_list_id, name, nullable)

    def visit_decimal(
        self,
        sibling_list_id: int,
        name: str,
        nullable: bool,
        metadata: str,
        precision: int,
        scale: int,
    ) -> None:
        type_ = Type("decimal", (), precision, scale)
        self.lists[sibling_list_id].append(Field(name, type_, nullable))

    def visit_struct(
        self, sibling_list_id: int, name: str, nullable: bool, metadata: str, child_list_id: int
    ) -> None:
        self._add("struct", sibling_list_id, name, nullable, child_list_id)

    def visit_list(
        self, sibling_list_id: int, name: str, nullable: bool, metadata: str, child_list_id: int
    ) -> None:
        self._add("list", sibling_list_id, name, nullable, child_list_id)

    def visit_map(
        self, sibling_list_id: int, name: str, nullable: bool, metadata: str, child_list_id: int
    ) -> None:
        self._add("map", sibling_list_id, name, nullable, child_list_id)


_ARROW = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_PLAIN = {"date": pa.int32(), "timestamp": pa.int64(), "timestamp_ntz": pa.int64()}


def arrow_type(type_: Type, *, plain: bool = False) -> pa.DataType:
    """The Arrow type; `plain` has whole numbers where it has dates and timestamps."""
    if type_.kind == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    below = [pa.field(f.name, arrow_type(f.type, plain=plain), f.nullable) for f in type_.fields]
    if type_.kind == "struct":
        return pa.struct(below)
    if type_.kind == "list":
        return pa.list_(below[0])
    if type_.kind == "map":
        return pa.map_(*below)
    return _PLAIN.get(type_.kind, _ARROW[type_.kind]) if plain else _ARROW[type_.kind]


def arrow_schema(fields: list[Field], *, plain: bool = False) -> pa.Schema:
    return pa.schema(
        [pa.field(f.name, arrow_type(f.type, plain=plain), f.nullable) for f in fields]
    )


def rows_of(table: pa.Table, fields: list[Field]) -> list[tuple[Any, ...]]:
    """An Arrow table as tuples."""
    columns = [c.to_pylist() for c in table.cast(arrow_schema(fields, plain=True)).columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def table_of(rows: list[tuple[Any, ...]], fields: list[Field]) -> pa.Table:
    """Tuples as an Arrow table."""
    plain, schema = arrow_schema(fields, plain=True), arrow_schema(fields)
    arrays = [
        pa.array([row[at] for row in rows], plain.field(at).type) for at in range(len(fields))
    ]
    return pa.Table.from_arrays(arrays, schema=plain).cast(schema)
