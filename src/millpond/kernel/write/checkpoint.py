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

from millpond.base.errors import CommitError, ObjectNotFoundError, PlanError
from millpond.base.seals import seal_file
from millpond.base.store import open_store
from millpond.base.textseals import SEAL, UNSEALED, parse_sealed, sealed
from millpond.kernel.actions import (
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
from millpond.kernel.write.checkpoint_rows import FileRows, grouped
from millpond.kernel.write.checksum import checksum, put_checksum, time_stated_by
from millpond.kernel.write.commit import log_path
from millpond.kernel.write.features import check_upkeep
from millpond.kernel.write.files import put_own
from millpond.kernel.write.scratch import on_this_machine
from millpond.kernel.write.seal import stream_digest
from millpond.plan.arguments import whole_of
from millpond.plan.arrow import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.base.store import ObjectMeta, Store
    from millpond.kernel.table import DeltaTable
    from millpond.plan.types import Struct

POLICY: Final = "delta.checkpointPolicy"
ROW_GROUP_ROWS: Final = 65_536
SIDECAR_FILES: Final = 250_000
"""About so many files make a sidecar."""


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
) -> CheckpointResult:
    """Write a checkpoint of the table's version; without a kind, the one that its policy says.

    All files are counted on the way, so the version gets its checksum, too.
    """
    whole_of(sidecar_files, "write_checkpoint(sidecar_files=)")
    snapshot = table.snapshot
    check_upkeep(snapshot)
    commits = snapshot.segment.commits
    if commits and commits[-1].name.unique is not None:
        raise CommitError(
            f"version {table.version} of {table.location} is not published yet",
            table=table.location,
            hint="publish_commit() first: a checkpoint takes the place of published commits",
        )
    policy = table.metadata.configuration.get(POLICY, "").lower()
    v2 = snapshot.protocol.reads(V2_CHECKPOINT)
    if kind not in (None, "classic", "v2"):
        raise PlanError(f"unknown kind of checkpoint {kind!r}", hint="classic or v2")
    chosen = kind or ("v2" if v2 and policy == "v2" else "classic")
    if chosen == "v2" and not v2:
        raise PlanError(
            f"{snapshot.table} does not allow V2 checkpoints", hint=f"set {POLICY} to v2 first"
        )
    store = open_store(table.location, settings=table.settings)
    rows = FileRows(snapshot, table.log_engine("auto"))
    writer = _Checkpoint(store, table, rows, max(1, sidecar_files))
    try:
        result = writer.classic() if chosen == "classic" else writer.v2()
    except BaseException:
        for path in writer.sidecar_paths:
            store.delete(path)
        raise
    counted = checksum(
        table.protocol,
        table.metadata,
        files=rows.adds,
        size=rows.file_bytes,
        stated_time=time_stated_by(table),
        # What is stored counts: the file may be another writer's.
        digests={path: stream_digest(store.get_stream(path)) for path in result.paths},
    )
    put_checksum(store, table.version, counted)
    return result


@dataclass(slots=True)
class _Checkpoint:
    store: Store
    table: DeltaTable
    rows: FileRows
    sidecar_files: int
    sidecar_paths: list[str] = field(default_factory=list)

    def classic(self) -> CheckpointResult:
        """One file with everything."""
        version = self.table.version
        columns = [*_SMALL, ("add", self.rows.add_type), ("remove", REMOVE)]
        head = self._head()
        if self.table.protocol.reads(V2_CHECKPOINT):
            columns.append(_V2[0])
            head.append({"checkpointMetadata": {"version": version}})
        schema = _schema(columns)
        with _parquet(schema) as (local, writer):
            writer.write_table(pa.Table.from_pylist(head, schema))
            for group in grouped(self.rows.tables(schema), ROW_GROUP_ROWS):
                writer.write_table(group, row_group_size=ROW_GROUP_ROWS)
            writer.close()
            seal_file(local)
            path = log_path(checkpoint_name(version))
            # If it is there, another writer made the checkpoint of this version: it says the same.
            meta = put_own(self.store, path, local)
        self._hint(len(head), {"sizeInBytes": meta.size})
        return CheckpointResult(version, "classic", (path,), self.rows.adds, self.rows.removes)

    def v2(self) -> CheckpointResult:
        """A manifest, and sidecars for files."""
        version = self.table.version
        sidecars = list(self._sidecars())
        schema = _schema([*_SMALL, *_V2])
        rows: list[dict[str, Any]] = [
            {"checkpointMetadata": {"version": version}},
            *self._head(),
            *({"sidecar": sidecar} for sidecar in sidecars),
        ]
        with _parquet(schema) as (local, writer):
            writer.write_table(pa.Table.from_pylist(rows, schema))
            writer.close()
            seal_file(local)
            path = log_path(unique_checkpoint_name(version, str(uuid.uuid4())))
            meta = put_own(self.store, path, local)
        size = meta.size + sum(s["sizeInBytes"] for s in sidecars)
        manifest = {
            "path": path.rpartition("/")[2],
            "sizeInBytes": meta.size,
            "modificationTime": _millis(meta),
        }
        self._hint(len(rows), {"sizeInBytes": size, "v2Checkpoint": manifest})
        paths = (path, *self.sidecar_paths)
        return CheckpointResult(version, "v2", paths, self.rows.adds, self.rows.removes)

    def _sidecars(self) -> Iterator[dict[str, Any]]:
        schema = _schema([("add", self.rows.add_type), ("remove", REMOVE)])
        groups = grouped(self.rows.tables(schema), min(ROW_GROUP_ROWS, self.sidecar_files))
        group = next(groups, None)
        while group is not None:
            with _parquet(schema) as (local, writer):
                rows = 0
                while group is not None and rows < self.sidecar_files:
                    writer.write_table(group, row_group_size=ROW_GROUP_ROWS)
                    rows += group.num_rows
                    group = next(groups, None)
                writer.close()
                seal_file(local)
                name = f"{uuid.uuid4()}.parquet"
                self.sidecar_paths.append(log_path(f"{SIDECARS}/{name}"))
                meta = put_own(self.store, self.sidecar_paths[-1], local)
            yield {"path": name, "sizeInBytes": meta.size, "modificationTime": _millis(meta)}

    def _head(self) -> list[dict[str, Any]]:
        """What is not about files; expired app transactions and removed domains are left out."""
        rows: list[dict[str, Any]] = [
            {"protocol": self.table.protocol.to_dict()},
            {"metaData": _pairs(self.table.metadata.to_dict())},
        ]
        for txn in self.table.app_transactions.values():
            found = {"appId": txn.app_id, "version": txn.version, "lastUpdated": txn.last_updated}
            rows.append({"txn": found})
        for domain in self.table.domain_metadata.values():
            known = {"domain": domain.domain, "configuration": domain.configuration}
            rows.append({"domainMetadata": {**known, "removed": False}})
        return rows

    def _hint(self, others: int, about: dict[str, Any]) -> None:
        """Tell readers where to begin, unless a newer checkpoint is known already."""
        path = log_path(LAST_CHECKPOINT)
        try:
            known = (parse_sealed(self.store.get(path)) or {}).get("version")
        except ObjectNotFoundError:
            known = None
        if type(known) is int and known > self.table.version:
            return
        size = others + self.rows.adds + self.rows.removes
        found = {"version": self.table.version, "size": size, "numOfAddFiles": self.rows.adds}
        tags = {"tags": {SEAL: UNSEALED}}
        text = json.dumps({**found, **about, **tags}, separators=(",", ":"))
        self.store.put(path, sealed(text.encode()), mode="overwrite")


_SMALL: Final = (
    ("txn", TXN),
    ("metaData", METADATA),
    ("protocol", PROTOCOL),
    ("domainMetadata", DOMAIN),
)
_V2: Final = (("checkpointMetadata", CHECKPOINT_METADATA), ("sidecar", SIDECAR))


def _schema(columns: list[tuple[str, Struct]]) -> pa.Schema:
    return pa.schema([pa.field(name, to_arrow(type_)) for name, type_ in columns])


def _pairs(metadata: dict[str, Any]) -> dict[str, Any]:
    """Maps as Arrow takes them."""
    found = dict(metadata)
    found["configuration"] = list(found["configuration"].items())
    options = list(found["format"]["options"].items())
    found["format"] = {**found["format"], "options": options}
    return found


@contextmanager
def _parquet(schema: pa.Schema) -> Iterator[tuple[Path, pq.ParquetWriter]]:
    with (
        on_this_machine("the checkpoint"),
        tempfile.TemporaryDirectory(prefix="millpond-") as directory,
    ):
        local = Path(directory) / "checkpoint.parquet"
        writer = pq.ParquetWriter(local, schema, compression="zstd", write_page_checksum=True)
        try:
            yield local, writer
        finally:
            writer.close()


def _millis(meta: ObjectMeta) -> int:
    return int(meta.modified.timestamp() * 1000)
