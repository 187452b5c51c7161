"""Tables written by hand, action by action, for tests of what a reader makes of them."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.base.textseals import SEAL, UNSEALED, seal_commit, sealed
from millpond.kernel import actions
from millpond.plan.arrow import to_arrow
from millpond.plan.typejson import schema_to_json
from millpond.plan.types import LONG, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

Action = dict[str, Any]
NUMBERS: Final = Struct.of(n=LONG)
_KINDS: Final = {
    "txn": actions.TXN,
    "add": actions.ADD,
    "remove": actions.REMOVE,
    "metaData": actions.METADATA,
    "protocol": actions.PROTOCOL,
    "domainMetadata": actions.DOMAIN,
    "sidecar": actions.SIDECAR,
    "checkpointMetadata": actions.CHECKPOINT_METADATA,
}


def rewrite(file: Path, old: str, new: str) -> None:
    """Replace a string in a log file of Millpond's, whose seal fits again afterwards."""
    text = re.sub(r'"millpondSeal":"[0-9a-f]{64}"', f'"{SEAL}":"{UNSEALED}"', file.read_text())
    assert old in text
    changed = text.replace(old, new).encode()
    is_commit = file.suffix == ".json"
    file.write_bytes(seal_commit(changed, int(file.name[:20])) if is_commit else sealed(changed))


def protocol(
    reader: int = 1,
    writer: int = 2,
    features: Sequence[str] | None = None,
    writer_features: Sequence[str] | None = None,
) -> Action:
    """A protocol; with features, of the versions that have them."""
    if features is None:
        return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}
    named = list(features if writer_features is None else writer_features)
    found = {"minReaderVersion": 3, "minWriterVersion": 7}
    return {"protocol": {**found, "readerFeatures": list(features), "writerFeatures": named}}


def metadata(
    schema: Struct | str = NUMBERS, partitions: Sequence[str] = (), **configuration: str
) -> Action:
    """Metadata; properties are given without their `delta.`."""
    found = {
        "id": "a-table",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema if isinstance(schema, str) else schema_to_json(schema),
        "partitionColumns": list(partitions),
        "configuration": {f"delta.{name}": value for name, value in configuration.items()},
        "createdTime": 0,
    }
    return {"metaData": found}


def add(path: str, **more: Any) -> Action:
    """A file that comes."""
    found = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0}
    return {"add": {**found, "dataChange": True, **more}}


def remove(path: str, **more: Any) -> Action:
    """A file that goes."""
    return {"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True, **more}}


def info(**members: Any) -> Action:
    """What a commit says of itself."""
    return {"commitInfo": members}


def commit(table: Path, version: int, *lines: Action, millis: int | None = None) -> Path:
    """Write a commit; `millis` is the time of its file."""
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    file = log / f"{version:020}.json"
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    if millis is not None:
        os.utime(file, (millis / 1000, millis / 1000))
    return file


def begin(table: Path, *lines: Action, schema: Struct = NUMBERS, **configuration: str) -> Path:
    """Version 0: a plain protocol, metadata and what else is given."""
    commit(table, 0, protocol(), metadata(schema, **configuration), *lines)
    return table


def data(table: Path, name: str, columns: Mapping[str, Any] | pa.Table, **more: Any) -> Action:
    """Write a data file under this name, as it is; and its add action, with the name encoded."""
    from urllib.parse import quote

    rows = columns if isinstance(columns, pa.Table) else pa.table(columns)
    file = table / name
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, file)
    return add(quote(name), **{"size": file.stat().st_size, **more})


def numbers(table: Path, name: str, *values: int, **more: Any) -> Action:
    """A data file of numbers, with its statistics."""
    stats = {
        "numRecords": len(values),
        "minValues": {"n": min(values)},
        "maxValues": {"n": max(values)},
        "nullCount": {"n": 0},
    }
    return data(table, name, {"n": pa.array(values, pa.int64())}, stats=json.dumps(stats), **more)


def checkpoint(
    table: Path,
    version: int,
    *lines: Action,
    name: str | None = None,
    parsed: pa.DataType | None = None,
    group_rows: int | None = None,
) -> Path:
    """Write actions as a checkpoint, or a part of one, or a sidecar; its name says which.

    `parsed` is the type of statistics as a column, which add actions then bring.
    """
    file = table / "_delta_log" / (name or f"{version:020}.checkpoint.parquet")
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".json":
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return file
    types = {kind: to_arrow(shape) for kind, shape in _KINDS.items()}
    if parsed is not None:
        members = [types["add"].field(i) for i in range(types["add"].num_fields)]
        types["add"] = pa.struct([*members, pa.field("stats_parsed", parsed)])
    rows = [{kind: _mapped(action) for kind, action in line.items()} for line in lines]
    schema = pa.schema(list(types.items()))
    pq.write_table(pa.Table.from_pylist(rows, schema), file, row_group_size=group_rows)
    return file


def hint(table: Path, content: Mapping[str, Any] | str) -> None:
    """`_last_checkpoint`."""
    text = content if isinstance(content, str) else json.dumps(content)
    (table / "_delta_log" / "_last_checkpoint").write_text(text)


def listing(*files: tuple[str, int], millis: int = 0) -> pa.Table:
    """The listing of a log without files: names and sizes."""
    return pa.table(
        {
            "path": [f"/t/_delta_log/{name}" for name, _ in files],
            "size": [size for _, size in files],
            "modified": pa.array([millis * 1000] * len(files), pa.timestamp("us", tz="UTC")),
        }
    )


def _mapped(action: Mapping[str, Any]) -> dict[str, Any]:
    """An action with its maps as Arrow wants them."""
    maps = ("partitionValues", "tags", "configuration")
    found: dict[str, Any] = {
        name: list(value.items()) if name in maps and isinstance(value, dict) else value
        for name, value in action.items()
    }
    if "format" in found:
        found["format"] = {**found["format"], "options": []}
    return found


def sorted_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as tuples, in one order."""
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def paths(files: Iterable[str | None]) -> list[str]:
    """Paths in one order."""
    return sorted(path for path in files if path is not None)
