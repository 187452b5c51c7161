"""Files that others wrote become part of a table: what is said of them has to be readable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from millpond.base.errors import CorruptLogError, SchemaError
from millpond.kernel.actions import ADD
from millpond.kernel.features import DELETION_VECTORS
from millpond.kernel.partitions import read_value
from millpond.kernel.write import exactjson
from millpond.plan.arrow import to_arrow
from millpond.plan.types import LONG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.kernel.actions import Protocol
    from millpond.kernel.snapshot import Snapshot


_LONGS: Final = tuple(field.name for field in ADD if field.type == LONG)
_MEMBERS: Final = f"members are: {', '.join(ADD.names)}"


def checked_add(snapshot: Snapshot, protocol: Protocol, add: Mapping[str, Any]) -> dict[str, Any]:
    """An add action as it is committed; refused if the table could not be read with it."""
    try:
        pa.array([dict(add)], to_arrow(ADD))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SchemaError(f"this is no add action: {error}", hint=_MEMBERS) from error
    unknown = [name for name in add if name not in ADD]
    missing = [name for name in ("path", "size", "modificationTime") if add.get(name) is None]
    if unknown or missing:
        what = f"has no member {unknown[0]!r}" if unknown else f"needs a {missing[0]}"
        raise SchemaError(f"an add action {what}: {dict(add)}", hint=_MEMBERS)
    _check_numbers(add)
    columns = snapshot.columns
    names = [columns.physical_name(columns.schema.field(n)) for n in snapshot.partition_columns]
    given = dict(add.get("partitionValues") or {})
    if set(given) != set(names):
        raise SchemaError(
            f"the add action of {add['path']} has partition values for {sorted(given)}; "
            f"the table is partitioned by {sorted(names)}",
            hint="give a text or None for each of them, and for no other",
        )
    _check_described(snapshot, protocol, add)
    return {"dataChange": True, **add, "partitionValues": given}


def _check_numbers(add: Mapping[str, Any]) -> None:
    """Refuse a file without a name, and fractions, which Arrow rounds and the log would keep."""
    if not add["path"]:
        raise SchemaError("an add action has an empty path", hint="name the file by its path")
    for name in _LONGS:
        value = add.get(name)
        if value is not None and (type(value) is not int or (name == "size" and value < 0)):
            raise SchemaError(
                f"the add action of {add['path']} has {value!r} as its {name}",
                hint="a whole number; of a time, the milliseconds",
            )


def _check_described(snapshot: Snapshot, protocol: Protocol, add: Mapping[str, Any]) -> None:
    """Refuse values, statistics and vectors of an add action that nobody could read."""
    what = f"the add action of {add['path']}"
    values = dict(add.get("partitionValues") or {})
    for name in snapshot.partition_columns:
        field = snapshot.schema.field(name)
        text = values[snapshot.columns.physical_name(field)]
        try:
            read_value(text, field.type, column=name, table=snapshot.table)
        except CorruptLogError as error:
            raise SchemaError(
                f"{what} has {text!r} for {name!r}, which is no {field.type}",
                hint="write it as Delta does, such as 2024-05-31 for a date",
            ) from error
    if not _are_statistics(add.get("stats")):
        raise SchemaError(
            f"{what} has statistics that are no JSON object with a whole numRecords",
            hint="leave them out",
        )
    if add.get("deletionVector") and not protocol.reads(DELETION_VECTORS):
        raise SchemaError(
            f"{what} has a deletion vector, which the table does not allow",
            hint="set delta.enableDeletionVectors to true first",
        )


def _are_statistics(text: str | None) -> bool:
    if text is None:
        return True
    try:
        found = exactjson.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict):
        return False
    rows = found.get("numRecords")
    return rows is None or (type(rows) is int and rows >= 0)
