"""Decimals that older files hold as whole numbers, after a column's type was widened.

Spark reads whole numbers only as decimals that hold every number of the stored width, so such a
column is scanned as a wider decimal and cast; all other widenings are the scans' own.

>>> from millpond.plan.types import Field
>>> notes = {TYPE_CHANGES: [{"fromType": "byte", "toType": "decimal(4,1)"}]}
>>> field = Field("a", Decimal(4, 1)).with_metadata(notes)
>>> print(scanned_type(field))
decimal(11,1)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from millpond.plan.types import DataType, Decimal, Struct

if TYPE_CHECKING:
    from millpond.plan.node import Plan
    from millpond.plan.types import Field

TYPE_CHANGES: Final = "delta.typeChanges"
_DIGITS: Final = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_MOST_DIGITS: Final = 38


def scanned_type(field: Field) -> DataType:
    """The type to scan a column of the table's schema by."""
    if not isinstance(field.type, Decimal):
        return field.type
    changes = field.metadata_dict().get(TYPE_CHANGES)
    known = changes if isinstance(changes, list) else []
    before = [change.get("fromType") for change in known if isinstance(change, dict)]
    digits = max((_DIGITS.get(name, 0) for name in before if isinstance(name, str)), default=0)
    scale = field.type.scale
    if field.type.precision - scale >= digits or digits + scale > _MOST_DIGITS:
        return field.type
    return Decimal(digits + scale, scale)


def scanned(columns: Struct, schema: Struct) -> Struct:
    """A scan's columns with the types to scan them by; `schema` is the table's."""
    return Struct(tuple(replace(c, type=_type(c, schema.field(c.name))) for c in columns))


def _type(column: Field, field: Field) -> DataType:
    return scanned_type(field) if column.type == field.type else column.type


def as_declared(plan: Plan, schema: Struct) -> Plan:
    """The plan's columns, those of `schema` in its types."""
    from millpond.plan.expr import col

    declared = {field.name: field.type for field in schema}
    differs = [f.name for f in plan.schema if declared.get(f.name, f.type) != f.type]
    if not differs:
        return plan
    columns = (
        col(name).cast(declared[name]).alias(name) if name in differs else col(name)
        for name in plan.schema.names
    )
    return plan.select(*columns)
