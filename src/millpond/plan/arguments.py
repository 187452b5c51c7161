"""Arguments as people give them: made into what a plan takes, or an error that names them.

>>> print(schema_of({"id": "long", "note": "string"}, "schema"))
struct<id: long, note: string>
>>> items_of("site", "partition_by")
('site',)
>>> text_of(5, "col()", "a column's name")
Traceback (most recent call last):
...
millpond.base.errors.TypeMismatchError: col() takes a column's name, not 5
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from millpond.base.errors import TypeMismatchError
from millpond.plan.tree import Tree
from millpond.plan.types import DataType, Decimal, Field, List, Map, Primitive, Struct, require_text

if TYPE_CHECKING:
    import pyarrow as pa

    from millpond.plan.node import Plan

AnyType: TypeAlias = "DataType | str | pa.DataType"
"""A type, its name, or Arrow's type for it."""
AnySchema: TypeAlias = "Struct | Mapping[str, AnyType] | pa.Schema"
"""A struct, types by column name, or an Arrow schema."""

_TYPES = (Primitive, Decimal, Struct, List, Map)


def wrong(
    argument: str, wanted: str, given: object, *, hint: str | None = None
) -> TypeMismatchError:
    """The error for an argument of the wrong kind: what it is, what to give, what was given."""
    return TypeMismatchError(f"{argument} takes {wanted}, not {_shown(given)}", hint=hint)


def _shown(given: object) -> str:
    if given is None or isinstance(given, str | bytes | int | float):
        text = repr(given)
        return text if len(text) <= 60 else text[:59] + "…"
    if isinstance(given, Tree):
        from millpond.plan.node import Plan

        return "a plan" if isinstance(given, Plan) else "an expression"
    name = given.__name__ if isinstance(given, type) else type(given).__name__
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"the class {name}" if isinstance(given, type) else f"{article} {name}"


def text_of(given: object, argument: str, wanted: str, *, hint: str | None = None) -> str:
    """A text."""
    if not isinstance(given, str):
        raise wrong(argument, wanted, given, hint=hint)
    require_text(given, argument)
    return given


def path_of(given: object, argument: str) -> str:
    """A path or URL as text."""
    if not isinstance(given, str | os.PathLike):
        raise wrong(argument, "a path or URL", given)
    found = os.fspath(given)
    if not isinstance(found, str) or not found:
        raise wrong(argument, "a path or URL", found, hint="the current directory is '.'")
    return found


def whole_of(given: object, argument: str, wanted: str = "a whole number") -> int:
    """A whole number; true and false are none."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise wrong(argument, wanted, given)
    return given


def items_of(given: Any, argument: str, wanted: str = "one or several of them") -> tuple[Any, ...]:
    """Several items, or one that stands for itself: a name is not a sequence of letters."""
    from millpond.plan.expr import Expr, Named, SortKey

    if isinstance(given, str | Expr | Named | SortKey):
        return (given,)
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping):
        raise wrong(argument, wanted, given)
    return tuple(given)


def plan_of(given: object, argument: str) -> Plan:
    """A plan."""
    from millpond.plan.node import Plan

    if not isinstance(given, Plan):
        raise wrong(argument, "a plan", given, hint="make one with values() or scan()")
    return given


def type_of(given: object, argument: str) -> DataType:
    """A type: one of ours, the name of one, or an Arrow type."""
    if isinstance(given, _TYPES):
        return given
    if isinstance(given, str):
        from millpond.plan.typejson import type_from_dict

        return type_from_dict(given)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(given, arrow.DataType):
        from millpond.plan.arrow import from_arrow

        return from_arrow(given)
    raise wrong(argument, "a type or its name", given, hint="such as 'long' or types.LONG")


def schema_of(given: object, argument: str) -> Struct:
    """A schema: a struct, types by column name, or an Arrow schema."""
    if isinstance(given, Struct):
        return given
    if isinstance(given, Mapping):
        fields = (
            Field(name, type_of(kind, f"{argument}[{name!r}]")) for name, kind in given.items()
        )
        return Struct(tuple(fields))
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(given, arrow.Schema):
        from millpond.plan.arrow import from_arrow_schema

        return from_arrow_schema(given)
    raise wrong(argument, "a schema", given, hint="such as {'site': 'string', 'level': 'double'}")
