"""Whether a schema can be one of a Delta table, before a commit says that it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.base.errors import SchemaError
from millpond.kernel.snapshot import named_twice
from millpond.kernel.write.features import has_change_feed
from millpond.plan.types import DataType, List, Map, Struct, types_in

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_LEVELS: Final = 98
"""Groups inside each other in a file that pyarrow reads."""
_OF_CHANGES: Final = ("_change_type", "_commit_version", "_commit_timestamp")


def check_shape(schema: Struct, configuration: Mapping[str, str]) -> None:
    """Refuse names that readers can't tell apart, and structs that files can't hold."""
    twice = named_twice(schema)
    if twice is not None:
        raise SchemaError(
            "two columns differ only in upper and lower case, which Delta forbids: "
            f"{twice!r} is there twice",
            hint="rename one of them",
        )
    if any(isinstance(type_, Struct) and not type_.fields for type_ in types_in(schema)):
        raise SchemaError(
            "a struct without members can't be stored in Parquet", hint="leave it out"
        )
    deep = next((f.name for f in schema if _levels(f.type) > MOST_LEVELS), None)
    if deep is not None:
        raise SchemaError(
            f"column {deep!r} is nested deeper than readers of Parquet go",
            hint=f"{MOST_LEVELS} structs, or half as many lists, or keep it as JSON text",
        )
    taken = [f.name for f in schema if f.name.lower() in _OF_CHANGES]
    if taken and has_change_feed(configuration):
        raise SchemaError(
            f"the change data feed has a column {taken[0]!r} of its own",
            hint="rename the table's, or leave delta.enableChangeDataFeed off",
        )


def _levels(type_: DataType) -> int:
    """The groups inside each other that a type has in Parquet: lists and maps are two."""
    deepest = 0
    todo = [(type_, 0)]
    while todo:
        inner, above = todo.pop()
        if isinstance(inner, Struct):
            todo += [(field.type, above + 1) for field in inner]
        elif isinstance(inner, List):
            todo.append((inner.element, above + 2))
        elif isinstance(inner, Map):
            todo += [(inner.key, above + 2), (inner.value, above + 2)]
        deepest = max(deepest, above)
    return deepest
