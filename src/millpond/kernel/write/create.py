"""A new table: its first commit holds protocol and metadata, and nothing else."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import CommitError, SchemaError, StoreError
from millpond.base.store import open_store
from millpond.base.textseals import seal_of
from millpond.kernel.actions import Metadata, Protocol
from millpond.kernel.engines import log_engine
from millpond.kernel.features import is_catalog_managed
from millpond.kernel.mapping import TableColumns
from millpond.kernel.names import LogName, commit_name
from millpond.kernel.open import SnapshotBuilder
from millpond.kernel.paths import table_location
from millpond.kernel.segment import LogFile
from millpond.kernel.table import DeltaTable, delta_table
from millpond.kernel.times import ENABLED_TIME, ENABLED_VERSION
from millpond.kernel.write.checksum import checksum, put_checksum
from millpond.kernel.write.commit import encode_commit, log_path, put_commit
from millpond.kernel.write.features import check_rules
from millpond.kernel.write.info import STATED_TIMES, Operation, checked_info, engine_info
from millpond.kernel.write.listed import millis
from millpond.kernel.write.mapped import unmapped, with_physical_names
from millpond.kernel.write.protocol import MAPPING_MODE, asked_features, needed_protocol
from millpond.kernel.write.shape import check_shape
from millpond.plan.arguments import schema_of, text_of
from millpond.plan.typejson import schema_to_json
from millpond.plan.types import NULL, VARIANT, List, Map, Struct

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from millpond.base.settings import Settings
    from millpond.plan.arguments import AnySchema

_log = logging.getLogger("millpond.kernel")
_OF_HISTORY: Final = (ENABLED_VERSION, ENABLED_TIME)
"""Properties that tell of another table's past when they are copied from there."""


def create_table(
    location: str | os.PathLike[str],
    schema: AnySchema,
    *,
    partition_by: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    info: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
) -> DeltaTable:
    """Create an empty table. One that is there already is an error, and stays as it is.

    The table keeps `settings` for all that is done with it: how an object store is reached.
    """
    table = table_location(location)
    schema = schema_of(schema, "create_table(schema=)")
    for text, what in ((name, "name"), (description, "description")):
        if text is not None:
            text_of(text, f"create_table({what}=)", "a text")
    told = checked_info(info)
    protocol, metadata = described(
        table, schema, partition_by, configuration or {}, name=name, description=description
    )
    now, txn_id = metadata.created_time or 0, str(uuid.uuid4())
    stated = now if metadata.configuration.get(STATED_TIMES, "").lower() == "true" else None
    commit_info = {
        **({} if stated is None else {"inCommitTimestamp": stated}),
        "timestamp": now,
        **Operation("CREATE TABLE", {"partitionBy": list(partition_by)}).to_dict(),
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "engineInfo": engine_info(),
        "txnId": txn_id,
    }
    actions = (
        ("commitInfo", {**told, **commit_info}),
        ("protocol", protocol.to_dict()),
        ("metaData", metadata.to_dict()),
    )
    store = open_store(location, settings=settings)
    content = encode_commit(actions, 0)
    if not put_commit(store, 0, content, txn_id):
        raise CommitError(
            f"there is a Delta table at {table} already",
            table=table,
            hint="open it with delta_table(), or choose another place",
        )
    found = checksum(
        protocol,
        metadata,
        files=0,
        size=0,
        txn_id=txn_id,
        stated_time=stated,
        seal=seal_of(content),
    )
    try:
        put_checksum(store, 0, found)
    except StoreError as error:
        _log.warning("the checksum of the new table %s failed: %s", table, error)
    if not is_catalog_managed(protocol):
        return delta_table(location, version=0, settings=settings)
    meta = store.head(log_path(commit_name(0)))
    first = LogFile(f"{table}/{meta.path}", LogName("commit", 0, 0), meta.size, millis(meta))
    snapshot = SnapshotBuilder(location).with_log_tail([first]).build(log_engine("auto", settings))
    return DeltaTable(snapshot, settings)


def described(
    table: str,
    schema: Struct,
    partition_by: Sequence[str],
    configuration: Mapping[str, str],
    *,
    name: str | None = None,
    description: str | None = None,
) -> tuple[Protocol, Metadata]:
    """Return the protocol and the metadata of a new table."""
    given, features = asked_features(configuration)
    plain = {k: v for k, v in given.items() if v is not None and k not in _OF_HISTORY}
    made, known = with_physical_names(Struct(tuple(map(unmapped, schema))), plain)
    protocol = needed_protocol(made, known, features=features)
    if is_catalog_managed(protocol):
        known.setdefault(STATED_TIMES, "true")
    _check(made, partition_by, known, table)
    return protocol, Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema_to_json(made),
        partition_columns=tuple(partition_by),
        configuration=known,
        name=name,
        description=description,
        created_time=int(time.time() * 1000),
    )


def _check(
    schema: Struct, partition_by: Sequence[str], configuration: Mapping[str, str], table: str
) -> None:
    if isinstance(partition_by, str) or not isinstance(partition_by, Collection):
        raise SchemaError(f"partition_by is a list of names, not {partition_by!r}")
    if not schema.fields:
        raise SchemaError("a table needs at least one column")
    check_shape(schema, configuration)
    check_rules(schema, configuration, table)
    for name in partition_by:
        type_ = schema.field(name).type
        if isinstance(type_, Struct | List | Map) or type_ in (VARIANT, NULL):
            raise SchemaError(
                f"a table can't be partitioned by {name!r}, which is a {type_}",
                hint="partition by plain values",
            )
    if len(set(partition_by)) < len(partition_by):
        raise SchemaError(f"a column stands twice in partition_by: {list(partition_by)}")
    if len(partition_by) == len(schema):
        raise SchemaError("a table can't be partitioned by all of its columns")
    TableColumns.of(schema, configuration.get(MAPPING_MODE), table=table)
