"""Checkpoints: the state of one version in Parquet, so that no reader needs older commits.

Classic ones are one file. V2 ones are a manifest under a unique name and sidecars, which are
written and read side by side. Rows stream through: memory does not grow with the table.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.base.errors import ObjectExistsError, PlanError
from millpond.base.store import open_store
from millpond.kernel.actions import (
    ADD,
    CHECKPOINT_METADATA,
    DOMAIN,
    METADATA,
    PROTOCOL,
    REMOVE,
    SIDECAR,
    TXN,
)
from millpond.kernel.features import V2_CHECKPOINT
from millpond.kernel.names import (
    LAST_CHECKPOINT,
    SIDECARS,
    checkpoint_name,
    unique_checkpoint_name,
)
from millpond.kernel.write.commit import log_path
from millpond.kernel.write.state import Tombstones, live_adds
from millpond.kernel.write.stats import indexed_leaves
from millpond.plan.arrow import to_arrow
from millpond.plan.make import values
from millpond.plan.rows import ParseJson
from millpond.plan.types import BOOLEAN, LONG, Field, Struct, is_fractional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.base.settings import Settings
    from millpond.base.store import ObjectMeta, Store
    from millpond.kernel.snapshot import Snapshot
    from millpond.kernel.table import DeltaTable

STATS_AS_STRUCT: Final = "delta.checkpoint.writeStatsAsStruct"
STATS_AS_JSON: Final = "delta.checkpoint.writeStatsAsJson"
POLICY: Final = "delta.checkpointPolicy"
ROW_GROUP_ROWS: Final = 131_072
SIDECAR_FILES: Final = 250_000
"""So many files make a sidecar."""


@dataclass(frozen=True, slots=True)
class CheckpointResult:
    """What was written."""

    version: int
    kind: Literal["classic", "v2"]
    paths: tuple[str, ...]
    adds: int
    removes: int


def write_checkpoint(
    table: DeltaTable,
    *,
    kind: Literal["classic", "v2"] | None = None,
    sidecar_files: int = SIDECAR_FILES,
    settings: Settings | None = None,
) -> CheckpointResult:
    """Write a checkpoint of the table's version; without a kind, the one that its policy says."""
    snapshot = table.snapshot
    v2 = snapshot.protocol.reads(V2_CHECKPOINT)
    chosen = kind or ("v2" if v2 and _property(snapshot, POLICY) == "v2" else "classic")
    if chosen == "v2" and not v2:
        raise PlanError(
            f"{snapshot.table} does not allow V2 checkpoints",
            hint=f"set {POLICY} to v2 first",
        )
    writer = _Checkpoint(open_store(table.location, settings=settings), table, sidecar_files)
    return writer.classic() if chosen == "classic" else writer.v2()


@dataclass(slots=True)
class _Checkpoint:
    store: Store
    table: DeltaTable
    sidecar_files: int
    adds: int = 0
    removes: int = 0
    size: int = field(default=0)

    @property
    def snapshot(self) -> Snapshot:
        return self.table.snapshot

    def classic(self) -> CheckpointResult:
        """One file with everything."""
        version = self.snapshot.version
        schema = _schema(self.add_type, v2=self.snapshot.protocol.reads(V2_CHECKPOINT))
        with _parquet(schema) as (local, writer):
            head = self._head()
            if "checkpointMetadata" in schema.names:
                head.append({"checkpointMetadata": {"version": version}})
            writer.write_table(pa.Table.from_pylist(head, schema))
            for batch in self._files():
                writer.write_table(_aligned(batch, schema), row_group_size=ROW_GROUP_ROWS)
            writer.close()
            path = log_path(checkpoint_name(version))
            meta = _put(self.store, path, local)
        actions = len(head) + self.adds + self.removes
        self._hint({"size": actions, "sizeInBytes": meta.size, "numOfAddFiles": self.adds})
        return CheckpointResult(version, "classic", (path,), self.adds, self.removes)

    def v2(self) -> CheckpointResult:
        """A manifest, and sidecars for files."""
        version = self.snapshot.version
        sidecars = [meta for meta in self._sidecars() if meta is not None]
        schema = pa.schema([_arrow(name, type_) for name, type_ in (*_SMALL, *_V2)])
        rows: list[dict[str, Any]] = [
            {"checkpointMetadata": {"version": version}},
            *self._head(),
            *({"sidecar": sidecar} for sidecar in sidecars),
        ]
        with _parquet(schema) as (local, writer):
            writer.write_table(pa.Table.from_pylist(rows, schema))
            writer.close()
            path = log_path(unique_checkpoint_name(version, str(uuid.uuid4())))
            meta = _put(self.store, path, local)
        self._hint(
            {
                "size": len(rows) + self.adds + self.removes,
                "sizeInBytes": meta.size + sum(s["sizeInBytes"] for s in sidecars),
                "numOfAddFiles": self.adds,
                "v2Checkpoint": {
                    "path": path.rpartition("/")[2],
                    "sizeInBytes": meta.size,
                    "modificationTime": _millis(meta),
                },
            }
        )
        paths = (path, *(log_path(f"{SIDECARS}/{s['path']}") for s in sidecars))
        return CheckpointResult(version, "v2", paths, self.adds, self.removes)

    def _sidecars(self) -> Iterator[dict[str, Any] | None]:
        schema = pa.schema([_arrow("add", self.add_type), _arrow("remove", REMOVE)])
        batches = self._files()
        batch = next(batches, None)
        while batch is not None:
            with _parquet(schema) as (local, writer):
                rows = 0
                while batch is not None and rows < self.sidecar_files:
                    writer.write_table(_aligned(batch, schema), row_group_size=ROW_GROUP_ROWS)
                    rows += batch.num_rows
                    batch = next(batches, None)
                writer.close()
                name = f"{uuid.uuid4()}.parquet"
                meta = _put(self.store, log_path(f"{SIDECARS}/{name}"), local)
            yield {"path": name, "sizeInBytes": meta.size, "modificationTime": _millis(meta)}

    def _head(self) -> list[dict[str, Any]]:
        """What is not about files."""
        snapshot = self.snapshot
        rows: list[dict[str, Any]] = [
            {"protocol": snapshot.protocol.to_dict()},
            {"metaData": _pairs(snapshot.metadata.to_dict())},
        ]
        for txn in self.table.app_transactions.values():
            found = {"appId": txn.app_id, "version": txn.version, "lastUpdated": txn.last_updated}
            rows.append({"txn": found})
        for domain in self.table.domain_metadata.values():
            found = {"domain": domain.domain, "configuration": domain.configuration}
            rows.append({"domainMetadata": {**found, "removed": False}})
        return rows

    def _files(self) -> Iterator[pa.Table]:
        """Adds, then removes, as rows of a checkpoint."""
        for batch in live_adds(self.snapshot):
            self.adds += batch.num_rows
            yield self._with_statistics(batch)
        for batch in Tombstones.kept(self.snapshot).batches():
            self.removes += batch.num_rows
            yield pa.Table.from_batches([batch])

    def _with_statistics(self, batch: pa.RecordBatch) -> pa.Table:
        columns = {name: batch.column(name) for name in batch.schema.names}
        columns["dataChange"] = pa.repeat(pa.scalar(False), batch.num_rows)
        parsed = self.stats_type
        if parsed is not None:
            texts = values(pa.table({"stats": batch.column("stats")}))
            found = ParseJson(texts, "stats", parsed, "parsed").to_arrow(engine="arrow")
            columns["stats_parsed"] = found.column("parsed").combine_chunks()
        if _property(self.snapshot, STATS_AS_JSON, "true") == "false":
            columns["stats"] = pa.nulls(batch.num_rows, pa.string())
        arrays = [columns[f.name] for f in self.add_type]
        add = pa.StructArray.from_arrays(arrays, fields=list(to_arrow(self.add_type)))
        return pa.table([add], names=["add"])

    @property
    def stats_type(self) -> Struct | None:
        """The shape of statistics as columns, if the table wants them so."""
        if _property(self.snapshot, STATS_AS_STRUCT, "false") != "true":
            return None
        return stats_type(self.snapshot)

    @property
    def add_type(self) -> Struct:
        """An add action as this checkpoint holds it."""
        parsed = self.stats_type
        return ADD if parsed is None else Struct((*ADD.fields, Field("stats_parsed", parsed)))

    def _hint(self, about: dict[str, Any]) -> None:
        """Tell readers where to begin, unless a newer checkpoint is known already."""
        known = -1
        path = log_path(LAST_CHECKPOINT)
        try:
            known = int(json.loads(self.store.get(path)).get("version", -1))
        except (FileNotFoundError, ValueError, AttributeError, TypeError):
            known = -1
        if known <= self.snapshot.version:
            text = json.dumps({"version": self.snapshot.version, **about}, separators=(",", ":"))
            self.store.put(path, text.encode(), mode="overwrite")


_SMALL: Final = (
    ("txn", TXN),
    ("metaData", METADATA),
    ("protocol", PROTOCOL),
    ("domainMetadata", DOMAIN),
)
_V2: Final = (("checkpointMetadata", CHECKPOINT_METADATA), ("sidecar", SIDECAR))


def stats_type(snapshot: Snapshot) -> Struct | None:
    """The shape of statistics that the table's files may have, by physical names."""
    from millpond.kernel.write.stats import has_bounds

    partitions = set(snapshot.partition_columns)
    stored = zip(snapshot.schema, snapshot.columns.stored_schema(), strict=True)
    physical = Struct(tuple(s for f, s in stored if f.name not in partitions))
    leaves = indexed_leaves(physical, snapshot.metadata.configuration)
    bounded = _tree([(path, type_) for path, type_ in leaves if has_bounds(type_)])
    counted = _tree([(path, LONG) for path, _ in leaves])
    nans = _tree([(path, LONG) for path, type_ in leaves if is_fractional(type_)])
    fields = [Field("numRecords", LONG)]
    if bounded is not None:
        fields += [Field("minValues", bounded), Field("maxValues", bounded)]
    if counted is not None:
        fields.append(Field("nullCount", counted))
    if nans is not None:
        fields.append(Field("nanCount", nans))
    return Struct((*fields, Field("tightBounds", BOOLEAN)))


def _tree(leaves: list[tuple[tuple[str, ...], Any]]) -> Struct | None:
    below: dict[str, list[tuple[tuple[str, ...], Any]]] = {}
    fields: dict[str, Any] = {}
    for path, type_ in leaves:
        if len(path) == 1:
            fields[path[0]] = type_
        else:
            fields.setdefault(path[0], None)
            below.setdefault(path[0], []).append((path[1:], type_))
    if not fields:
        return None
    for name, nested in below.items():
        fields[name] = _tree(nested)
    return Struct(tuple(Field(name, type_) for name, type_ in fields.items()))


def _schema(add: Struct, *, v2: bool) -> pa.Schema:
    small = [_arrow(name, type_) for name, type_ in _SMALL]
    extra = [_arrow("checkpointMetadata", CHECKPOINT_METADATA)] if v2 else []
    return pa.schema([*small, _arrow("add", add), _arrow("remove", REMOVE), *extra])


def _arrow(name: str, type_: Struct) -> pa.Field:
    return pa.field(name, to_arrow(type_))


def _aligned(batch: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with some columns as rows with all columns."""
    columns = [
        batch.column(f.name) if f.name in batch.schema.names else pa.nulls(batch.num_rows, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _pairs(metadata: dict[str, Any]) -> dict[str, Any]:
    """Maps as Arrow takes them."""
    found = dict(metadata)
    found["configuration"] = list(found["configuration"].items())
    options = list(found["format"]["options"].items())
    found["format"] = {**found["format"], "options": options}
    return found


@contextmanager
def _parquet(schema: pa.Schema) -> Iterator[tuple[Path, pq.ParquetWriter]]:
    with tempfile.TemporaryDirectory(prefix="millpond-") as directory:
        local = Path(directory) / "checkpoint.parquet"
        writer = pq.ParquetWriter(local, schema, compression="zstd")
        try:
            yield local, writer
        finally:
            writer.close()


def _put(store: Store, path: str, local: Path) -> ObjectMeta:
    try:
        return store.put_file(path, local)
    except ObjectExistsError:
        # Another writer made the checkpoint of this version: it says the same.
        return store.head(path)


def _millis(meta: ObjectMeta) -> int:
    return int(meta.modified.timestamp() * 1000)


def _property(snapshot: Snapshot, key: str, default: str = "") -> str:
    return snapshot.metadata.configuration.get(key, default).lower()
