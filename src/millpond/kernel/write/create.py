"""A new table: its first commit holds protocol and metadata, and nothing else."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from millpond.base.errors import CommitError, SchemaError
from millpond.base.store import open_store
from millpond.kernel.actions import Metadata
from millpond.kernel.mapping import TableColumns
from millpond.kernel.paths import table_location
from millpond.kernel.table import DeltaTable, delta_table
from millpond.kernel.times import ENABLED
from millpond.kernel.write.commit import encode_commit, put_commit
from millpond.kernel.write.protocol import MAPPING_MODE, mapped, needed_protocol
from millpond.kernel.write.upkeep import checksum, put_checksum
from millpond.plan.typejson import schema_to_json
from millpond.plan.types import List, Map, Struct

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from millpond.base.settings import Settings


def create_table(
    location: str | os.PathLike[str],
    schema: Struct,
    *,
    partition_by: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    info: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
) -> DeltaTable:
    """Create an empty table. One that is there already is an error, and stays as it is."""
    table = table_location(location)
    new, known = mapped(schema, dict(configuration or {}))
    _check(new, partition_by, known, table)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema_to_json(new),
        partition_columns=tuple(partition_by),
        configuration=known,
        name=name,
        description=description,
        created_time=int(time.time() * 1000),
    )
    txn_id = str(uuid.uuid4())
    from millpond.kernel.write.transaction import ENGINE_INFO

    now = int(time.time() * 1000)
    stated = {"inCommitTimestamp": now} if known.get(ENABLED, "").lower() == "true" else {}
    commit_info = {
        **stated,
        "timestamp": now,
        "operation": "CREATE TABLE",
        "operationParameters": {"partitionBy": list(partition_by)},
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "engineInfo": ENGINE_INFO,
        "txnId": txn_id,
        **dict(info or {}),
    }
    content = encode_commit(
        [
            ("commitInfo", commit_info),
            ("protocol", needed_protocol(new, known).to_dict()),
            ("metaData", metadata.to_dict()),
        ]
    )
    store = open_store(location, settings=settings)
    if not put_commit(store, 0, content, txn_id):
        raise CommitError(
            f"there is a Delta table at {table} already",
            table=table,
            hint="open it with delta_table(), or choose another place",
        )
    table_ = delta_table(location)
    put_checksum(store, 0, checksum(table_.snapshot, files=0, size=0, txn_id=txn_id))
    return table_


def _check(
    schema: Struct, partition_by: Sequence[str], configuration: Mapping[str, str], table: str
) -> None:
    if isinstance(partition_by, str):
        raise SchemaError(f"partition_by is a list of names, not {partition_by!r}")
    if not schema.fields:
        raise SchemaError("a table needs at least one column")
    lowered = [field.name.lower() for field in schema]
    if len(set(lowered)) < len(lowered):
        raise SchemaError("two columns differ only in upper and lower case, which Delta forbids")
    for name in partition_by:
        if isinstance(schema.field(name).type, Struct | List | Map):
            raise SchemaError(f"a table can't be partitioned by {name!r}: it is nested")
    if len(set(partition_by)) == len(schema):
        raise SchemaError("a table can't be partitioned by all of its columns")
    TableColumns.of(schema, configuration.get(MAPPING_MODE), table=table)
