"""Checkpoints of every kind, written by hand."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from tests.kernel.history.files import ARROW

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kernel.history.layout import Checkpoint
    from tests.kernel.history.model import Action, History, State

TEXTS: Final = pa.map_(pa.string(), pa.string())
VECTOR: Final = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
FILE: Final = [
    ("path", pa.string()),
    ("partitionValues", TEXTS),
    ("size", pa.int64()),
    ("dataChange", pa.bool_()),
    ("deletionVector", VECTOR),
]
ADD: Final = [*FILE, ("modificationTime", pa.int64()), ("stats", pa.string()), ("tags", TEXTS)]
REMOVE: Final = [*FILE, ("deletionTimestamp", pa.int64()), ("extendedFileMetadata", pa.bool_())]
OTHERS: Final = {
    "txn": pa.struct(
        [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", TEXTS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", TEXTS),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
}
V2: Final = {
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", TEXTS)]),
    "sidecar": pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]
    ),
}


def write_checkpoint(log: Path, history: History, about: Checkpoint) -> None:
    """Write one checkpoint into the log's directory."""
    state = history.state(about.version)
    files = _file_actions(state, about)
    others = _other_actions(state)
    types = _types(state, history, about)
    start = f"{about.version:020}.checkpoint"
    if about.kind == "classic":
        _write(log / f"{start}.parquet", others + files, types | OTHERS)
    elif about.kind == "multi":
        for number, share in enumerate(_shares(others + files, about.files), 1):
            name = f"{start}.{number:010}.{about.files:010}.parquet"
            _write(log / name, share, types | OTHERS)
    else:
        name = f"{start}.{_uuid(about, 0)}"
        rows = [{"checkpointMetadata": {"version": about.version}}, *others]
        if about.files:
            rows += _sidecars(log, files, types, about)
        else:
            rows += files
        if about.kind == "v2_json":
            text = "".join(json.dumps(_for_json(row)) + "\n" for row in rows)
            (log / f"{name}.json").write_text(text, encoding="utf-8")
        else:
            all_types = V2 | OTHERS if about.files else V2 | OTHERS | types
            _write(log / f"{name}.parquet", rows, all_types)


def _file_actions(state: State, about: Checkpoint) -> list[Action]:
    adds = [{"add": _checkpointed(add, state, about)} for add in state.live.values()]
    removes = [{"remove": {**one, "dataChange": False}} for one in state.tombstones.values()]
    return adds + (removes if about.keeps_tombstones else [])


def _other_actions(state: State) -> list[Action]:
    return [
        {"protocol": state.protocol},
        {"metaData": state.metadata},
        *({"txn": one} for one in state.transactions.values()),
        *({"domainMetadata": one} for one in state.domains.values() if not one["removed"]),
    ]


def _checkpointed(add: Action, state: State, about: Checkpoint) -> Action:
    """An add as a checkpoint has it: statistics as text, as columns, or both."""
    found = {**add, "dataChange": False}
    if about.stats != "json" and about.kind != "v2_json":
        stats = found.get("stats")
        found["stats_parsed"] = None if stats is None else json.loads(stats)
        values = state.partition_values(add)
        stored = state.stored_names()
        found["partitionValues_parsed"] = {stored[name]: v for name, v in values.items()}
        if about.stats == "parsed":
            found.pop("stats", None)
    return found


def _types(state: State, history: History, about: Checkpoint) -> dict[str, pa.DataType]:
    add = list(ADD)
    if about.stats != "json":
        stored = state.stored_names()
        partitions = [stored[name] for name in state.metadata["partitionColumns"]]
        data = [name for name in stored.values() if name not in partitions]
        values = pa.struct([(name, ARROW[history.types[name]]) for name in data])
        parsed = [
            ("numRecords", pa.int64()),
            ("minValues", values),
            ("maxValues", values),
            ("nullCount", pa.struct([(name, pa.int64()) for name in data])),
            ("tightBounds", pa.bool_()),
        ]
        add.append(("stats_parsed", pa.struct(parsed)))
        if partitions:
            typed = pa.struct([(name, ARROW[history.types[name]]) for name in partitions])
            add.append(("partitionValues_parsed", typed))
    return {"add": pa.struct(add), "remove": pa.struct(REMOVE)}


def _sidecars(
    log: Path, files: list[Action], types: dict[str, pa.DataType], about: Checkpoint
) -> list[Action]:
    directory = log / "_sidecars"
    directory.mkdir(exist_ok=True)
    found = []
    for number, share in enumerate(_shares(files, about.files), 1):
        file = directory / f"{_uuid(about, number)}.parquet"
        _write(file, share, types)
        size = file.stat().st_size
        found.append({"sidecar": {"path": file.name, "sizeInBytes": size, "modificationTime": 1}})
    return found


def _write(path: Path, rows: list[Action], types: dict[str, pa.DataType]) -> None:
    table = pa.table(
        {name: pa.array([row.get(name) for row in rows], type_) for name, type_ in types.items()}
    )
    pq.write_table(table, path, row_group_size=4)


def _for_json(row: Action) -> Action:
    """Without what a reader would not find in a line of JSON: nulls in place of maps."""
    return {kind: {k: v for k, v in one.items() if v is not None} for kind, one in row.items()}


def _shares(rows: list[Action], count: int) -> list[list[Action]]:
    """The rows dealt out in turn."""
    return [rows[number::count] for number in range(count)]


def _uuid(about: Checkpoint, number: int) -> uuid.UUID:
    """A name that no other checkpoint of the table has."""
    kind = 1 if about.kind == "v2_json" else 2
    unique: Any = (about.version + 1) * 1000 + kind * 100 + about.files * 10 + number
    return uuid.UUID(int=unique)
