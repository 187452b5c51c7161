"""Files that others wrote become part of a table: what is said of them has to be readable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.base.errors import CorruptLogError, SchemaError
from millpond.kernel.features import DELETION_VECTORS
from millpond.kernel.partitions import read_value
from millpond.kernel.write import exactjson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millpond.kernel.actions import Protocol
    from millpond.kernel.snapshot import Snapshot


def check_described(snapshot: Snapshot, protocol: Protocol, add: Mapping[str, Any]) -> None:
    """Refuse values, statistics and vectors of an add action by which the table could not be read.

    What its values are of is known to be the table's partition columns.
    """
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
    if not _is_object(add.get("stats")):
        raise SchemaError(f"{what} has statistics that are no JSON object", hint="leave them out")
    if add.get("deletionVector") and not protocol.reads(DELETION_VECTORS):
        raise SchemaError(
            f"{what} has a deletion vector, which the table does not allow",
            hint="set delta.enableDeletionVectors to true first",
        )


def _is_object(text: str | None) -> bool:
    try:
        return text is None or isinstance(exactjson.loads(text), dict)
    except (ValueError, RecursionError):
        return False
