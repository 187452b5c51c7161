"""Logs without data files, kept in `bench/data`: what opening, listing and planning is measured on.

    commits      1,000 small commits of 10 adds and 5 removes, no checkpoint
    classic      a classic checkpoint of a million adds and 100 such commits after it
    parsed       the same with `stats_parsed` and `partitionValues_parsed`
    multi_part   ten parts of half a million adds, and 20 commits
    v2           a V2 checkpoint with four sidecars of a quarter of a million adds, and 100 commits

They are written by hand (JSON and pyarrow), so that neither contender reads its own handwriting.
Sizes follow `adds`, a million by default.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from bench.kernel.adds import SCHEMA, START_MILLIS, add_lines, adds, line, remove_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

FORMAT: Final = 1
"""Part of the directory's name: raise it with every change of what is generated."""

ADDED, REMOVED = 10, 5
CHUNK: Final = 100_000
CHECKPOINT_VERSION: Final = 10
PARTS, SIDECARS = 10, 4
TABLE_ID: Final = "4f6a2d1e-0c57-4b0e-9d0a-6a1f1c3b9e55"
CHECKPOINT_ID: Final = "80a083e8-7026-4e79-81be-64bd76c43a11"

Action: TypeAlias = dict[str, Any]
CLASSIC_PROTOCOL: Final[Action] = {"minReaderVersion": 1, "minWriterVersion": 2}
V2_PROTOCOL: Final[Action] = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["v2Checkpoint"],
    "writerFeatures": ["v2Checkpoint"],
}
METADATA: Final[Action] = {
    "id": TABLE_ID,
    "format": {"provider": "parquet", "options": {}},
    "schemaString": json.dumps(SCHEMA),
    "partitionColumns": ["p"],
    "configuration": {},
    "createdTime": START_MILLIS,
}
TEXTS: Final = pa.map_(pa.string(), pa.string())
PROTOCOL_TYPE: Final = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
METADATA_TYPE: Final = pa.struct(
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
)
REMOVE_TYPE: Final = pa.struct(
    [("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]
)
SIDECAR_TYPE: Final = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]
)


def kept(name: str, size: int, write: Callable[[Path], None], *, directory: Path) -> Path:
    """The table of this name and size; it is written when it is not there yet."""
    path = directory / f"kernel-v{FORMAT}" / f"{name}-{size}"
    if not path.exists():
        unfinished = path.with_name(path.name + ".tmp")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        write(unfinished)
        unfinished.rename(path)
    return path


def commits(size: int, *, directory: Path) -> Path:
    """The log of small commits: one for every thousand of `size`."""
    count = max(size // 1_000, 2)

    def write(table: Path) -> None:
        head = [line({"protocol": CLASSIC_PROTOCOL}), line({"metaData": METADATA})]
        _write_commit(table, 0, head + add_lines(0, ADDED, total=count * ADDED))
        _write_commits(table, count - 1, after=0, total=count * ADDED, known=ADDED)

    return kept("commits", size, write, directory=directory)


def classic(size: int, *, directory: Path, parsed: bool = False) -> Path:
    """The log with one checkpoint file of `size` adds."""

    def write(table: Path) -> None:
        name = f"{CHECKPOINT_VERSION:020}.checkpoint.parquet"
        chunks = _chunks(0, size, total=size, parsed=parsed)
        _write_actions(table / "_delta_log" / name, chunks, head=CLASSIC_PROTOCOL)
        _write_hint(table, size=size + 2)
        _write_commits(table, 100, after=CHECKPOINT_VERSION, total=size, known=size)

    name = "parsed" if parsed else "classic"
    return kept(name, size, write, directory=directory)


def multi_part(size: int, *, directory: Path) -> Path:
    """The log with five times `size` adds in a checkpoint of ten parts."""
    total = 5 * size

    def write(table: Path) -> None:
        log = table / "_delta_log"
        share = total // PARTS
        for part in range(PARTS):
            name = f"{CHECKPOINT_VERSION:020}.checkpoint.{part + 1:010}.{PARTS:010}.parquet"
            chunks = _chunks(part * share, share, total=total)
            _write_actions(log / name, chunks, head=None if part else CLASSIC_PROTOCOL)
        _write_hint(table, size=share * PARTS + 2, parts=PARTS)
        _write_commits(table, 20, after=CHECKPOINT_VERSION, total=total, known=share * PARTS)

    return kept("multi_part", size, write, directory=directory)


def v2(size: int, *, directory: Path) -> Path:
    """The log with `size` adds in the sidecars of a V2 checkpoint."""

    def write(table: Path) -> None:
        log = table / "_delta_log"
        share = size // SIDECARS
        sidecars = []
        for number in range(SIDECARS):
            file = log / "_sidecars" / f"{number:08}-7026-4e79-81be-64bd76c43a12.parquet"
            _write_actions(file, _chunks(number * share, share, total=size), head=None)
            found = {"path": file.name, "sizeInBytes": file.stat().st_size}
            sidecars.append({**found, "modificationTime": START_MILLIS})
        _write_manifest(log, sidecars)
        _write_hint(table, size=share * SIDECARS + 7)
        _write_commits(table, 100, after=CHECKPOINT_VERSION, total=size, known=share * SIDECARS)

    return kept("v2", size, write, directory=directory)


def write_commit_after(table: Path, version: int, *, number: int) -> None:
    """One more small commit, of files that have not been there before."""
    _write_commit(table, version, add_lines(number, ADDED, total=1))


def _write_commits(table: Path, count: int, *, after: int, total: int, known: int) -> None:
    """Commits of new files; each removes files that were there, the oldest first."""
    for number in range(count):
        first = known + number * ADDED
        gone = list(range(number * REMOVED, (number + 1) * REMOVED))
        lines = add_lines(first, ADDED, total=total)
        lines += remove_lines(gone, millis=START_MILLIS + number)
        _write_commit(table, after + 1 + number, lines)


def _write_commit(table: Path, version: int, lines: list[str]) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    about = {"timestamp": START_MILLIS + version, "operation": "WRITE", "operationParameters": {}}
    text = "\n".join([line({"commitInfo": about}), *lines]) + "\n"
    (log / f"{version:020}.json").write_text(text, encoding="utf-8")


def _write_hint(table: Path, **about: int) -> None:
    text = line({"version": CHECKPOINT_VERSION, **about})
    (table / "_delta_log" / "_last_checkpoint").write_text(text, encoding="utf-8")


def _chunks(
    first: int, count: int, *, total: int, parsed: bool = False
) -> Iterable[pa.StructArray]:
    for start in range(first, first + count, CHUNK):
        yield adds(start, min(CHUNK, first + count - start), total=total, parsed=parsed)


def _write_actions(path: Path, chunks: Iterable[pa.StructArray], *, head: Action | None) -> None:
    """A checkpoint file or a part of one: protocol and metadata, if it has them, then adds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = None
    for chunk in chunks:
        rows = _actions(len(chunk), add=chunk)
        if writer is None:
            writer = pq.ParquetWriter(path, rows.schema, compression="snappy")
            if head is not None:
                protocol = pa.array([head, None], PROTOCOL_TYPE)
                metadata = pa.array([None, METADATA], METADATA_TYPE)
                nothing = pa.nulls(2, chunk.type)
                first = _actions(2, protocol=protocol, metaData=metadata, add=nothing)
                rows = pa.concat_tables([first, rows])
        writer.write_table(rows.combine_chunks(), row_group_size=CHUNK + 2)
    if writer is not None:
        writer.close()


def _actions(count: int, **columns: pa.Array) -> pa.Table:
    """Rows of a checkpoint: the given columns, and nulls in the others."""
    types = {"protocol": PROTOCOL_TYPE, "metaData": METADATA_TYPE, "remove": REMOVE_TYPE}
    nothing = {name: pa.nulls(count, type_) for name, type_ in types.items()}
    return pa.table({**nothing, **columns})


def _write_manifest(log: Path, sidecars: list[Action]) -> None:
    about = pa.struct([("version", pa.int64())])
    rows: list[tuple[str, Action]] = [
        ("checkpointMetadata", {"version": CHECKPOINT_VERSION}),
        ("protocol", V2_PROTOCOL),
        ("metaData", METADATA),
        *(("sidecar", sidecar) for sidecar in sidecars),
    ]
    types = {
        "checkpointMetadata": about,
        "protocol": PROTOCOL_TYPE,
        "metaData": METADATA_TYPE,
        "sidecar": SIDECAR_TYPE,
    }
    columns = {
        name: pa.array([action if kind == name else None for kind, action in rows], type_)
        for name, type_ in types.items()
    }
    name = f"{CHECKPOINT_VERSION:020}.checkpoint.{CHECKPOINT_ID}.parquet"
    pq.write_table(pa.table(columns), log / name, compression="snappy")
