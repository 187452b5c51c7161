"""`SchemaVisitor`: a schema as calls, one a field, the members of a nested field first."""

# ruff: noqa: ARG002  (methods that refuse by default look at no argument)

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.base.errors import UnsupportedNodeError
from millpond.plan.types import Decimal, Field, List, Map, Primitive, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millpond.plan.types import DataType


class SchemaVisitor:
    """Receives fields. `metadata` is JSON text; a field of a list or map has a fixed name.

    Implement `make_field_list` and the types that the engine knows.
    """

    engine: str = "visiting"
    """The engine's name, for errors."""

    def make_field_list(self, reserve: int) -> int:
        """A new list for about so many fields; its id."""
        raise NotImplementedError(f"{type(self).__name__} makes no field lists")

    def refuse(self, kind: str) -> None:
        """Called for a type that the visitor does not implement."""
        raise UnsupportedNodeError(f"the type {kind}", self.engine)

    def visit_void(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        """A field that only holds nulls."""
        self.refuse("void")

    def visit_boolean(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        """A field of truth values."""
        self.refuse("boolean")

    def visit_byte(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        """A field of 8-bit whole numbers."""
        self.refuse("byte")

    def visit_short(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        """A field of 16-bit whole numbers."""
        self.refuse("short")

    def visit_integer(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        """A field of 32-bit whole numbers."""
        self.refuse("integer")

    def visit_long(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        """A field of 64-bit whole numbers."""
        self.refuse("long")

    def visit_float(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        """A field of 32-bit floating point numbers."""
        self.refuse("float")

    def visit_double(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        """A field of 64-bit floating point numbers."""
        self.refuse("double")

    def visit_string(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        """A field of texts."""
        self.refuse("string")

    def visit_binary(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        """A field of bytes."""
        self.refuse("binary")

    def visit_date(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        """A field of days."""
        self.refuse("date")

    def visit_timestamp(
        self, sibling_list_id: int, name: str, nullable: bool, metadata: str
    ) -> None:
        """A field of moments in UTC, in microseconds."""
        self.refuse("timestamp")

    def visit_timestamp_ntz(
        self, sibling_list_id: int, name: str, nullable: bool, metadata: str
    ) -> None:
        """A field of wall clock readings without a zone, in microseconds."""
        self.refuse("timestamp_ntz")

    def visit_variant(self, sibling_list_id: int, name: str, nullable: bool, metadata: str) -> None:
        """A field of variants."""
        self.refuse("variant")

    def visit_decimal(
        self,
        sibling_list_id: int,
        name: str,
        nullable: bool,
        metadata: str,
        precision: int,
        scale: int,
    ) -> None:
        """A field of exact numbers."""
        self.refuse("decimal")

    def visit_struct(
        self, sibling_list_id: int, name: str, nullable: bool, metadata: str, child_list_id: int
    ) -> None:
        """A field of structs; the children are their members."""
        self.refuse("struct")

    def visit_list(
        self, sibling_list_id: int, name: str, nullable: bool, metadata: str, child_list_id: int
    ) -> None:
        """A field of lists; the one child is called `element`."""
        self.refuse("list")

    def visit_map(
        self, sibling_list_id: int, name: str, nullable: bool, metadata: str, child_list_id: int
    ) -> None:
        """A field of maps; the children are called `key` and `value`."""
        self.refuse("map")


PRIMITIVES: Final[Mapping[str, Callable[[SchemaVisitor, int, str, bool, str], None]]] = {
    "void": lambda v, *field: v.visit_void(*field),
    "boolean": lambda v, *field: v.visit_boolean(*field),
    "byte": lambda v, *field: v.visit_byte(*field),
    "short": lambda v, *field: v.visit_short(*field),
    "integer": lambda v, *field: v.visit_integer(*field),
    "long": lambda v, *field: v.visit_long(*field),
    "float": lambda v, *field: v.visit_float(*field),
    "double": lambda v, *field: v.visit_double(*field),
    "string": lambda v, *field: v.visit_string(*field),
    "binary": lambda v, *field: v.visit_binary(*field),
    "date": lambda v, *field: v.visit_date(*field),
    "timestamp": lambda v, *field: v.visit_timestamp(*field),
    "timestamp_ntz": lambda v, *field: v.visit_timestamp_ntz(*field),
    "variant": lambda v, *field: v.visit_variant(*field),
}
"""How each type without parameters is visited."""


def visit_schema(schema: Struct, visitor: SchemaVisitor) -> int:
    """Visit the fields of a schema; the id of the list that holds them."""
    return _visit_fields(schema.fields, visitor)


def visit_type(type_: DataType, visitor: SchemaVisitor) -> int:
    """Visit one type; the id of a list that holds one field without a name."""
    return _visit_fields((Field("", type_),), visitor)


def _visit_fields(fields: tuple[Field, ...], visitor: SchemaVisitor) -> int:
    root = visitor.make_field_list(len(fields))
    todo: list[tuple[Field, int, int | None]] = [(field, root, None) for field in reversed(fields)]
    while todo:
        field, siblings, children = todo.pop()
        below = _below(field.type)
        if below is None or children is not None:
            _visit_field(field, siblings, children, visitor)
            continue
        children = visitor.make_field_list(len(below))
        todo.append((field, siblings, children))
        todo.extend((child, children, None) for child in reversed(below))
    return root


def _below(type_: DataType) -> tuple[Field, ...] | None:
    """The fields inside a nested type; None for one that has no inside."""
    if isinstance(type_, Struct):
        return type_.fields
    if isinstance(type_, List):
        return (Field("element", type_.element, type_.contains_null),)
    if isinstance(type_, Map):
        return (Field("key", type_.key, False), Field("value", type_.value, type_.contains_null))
    return None


def _visit_field(field: Field, siblings: int, children: int | None, visitor: SchemaVisitor) -> None:
    type_ = field.type
    head = (siblings, field.name, field.nullable, field.metadata)
    if isinstance(type_, Primitive):
        PRIMITIVES[type_.name](visitor, *head)
        return
    if isinstance(type_, Decimal):
        visitor.visit_decimal(*head, type_.precision, type_.scale)
        return
    assert children is not None
    if isinstance(type_, Struct):
        visitor.visit_struct(*head, children)
    elif isinstance(type_, List):
        visitor.visit_list(*head, children)
    else:
        visitor.visit_map(*head, children)
