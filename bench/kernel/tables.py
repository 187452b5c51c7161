"""Tables with rows, kept in `bench/data`: what reading data is measured on.

    numeric    whole and fractional numbers, dates, timestamps
    strings    texts that repeat, texts that do not, and short codes
    deletions  numbers and texts, and a deletion vector of 2 % of the rows for every file

40 files each, in four partitions, 20 million rows by default; written by hand, as the logs are.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from base64 import b85encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from bench.kernel.adds import START_MILLIS, line
from bench.kernel.logs import CLASSIC_PROTOCOL, METADATA, kept

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES: Final = 40
PARTITIONS: Final = 4
DELETED_SHARE: Final = 0.02
SEED: Final = 20240601
VECTOR_MAGIC: Final = 1681511377
DELTA_TYPES: Final = {
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.string(): "string",
    pa.timestamp("us", tz="UTC"): "timestamp",
}
_TO_Z85: Final = bytes.maketrans(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)


@dataclass(frozen=True, slots=True)
class Content:
    """What a table holds: its columns, and whether rows of it are deleted."""

    columns: Callable[[np.random.Generator, int, int], dict[str, pa.Array]]
    is_deleted_from: bool = False


def table(name: str, rows: int, *, directory: Path) -> Path:
    """The table of this name; it is written when it is not there yet."""
    content = CONTENTS[name]
    return kept(name, rows, lambda path: _write(path, content, rows), directory=directory)


def _write(path: Path, content: Content, rows: int) -> None:
    actions = []
    schema = pa.schema([])
    for number in range(FILES):
        first = number * rows // FILES
        count = (number + 1) * rows // FILES - first
        rng = np.random.default_rng([SEED, number])
        data = pa.table(content.columns(rng, first, count))
        schema = data.schema
        actions.append({"add": _written(path, data, number)})
        if content.is_deleted_from:
            deleted = np.flatnonzero(rng.random(count) < DELETED_SHARE)
            vector = _written_vector(path, deleted, number)
            actions[-1]["add"]["deletionVector"] = vector
    _write_log(path, schema, actions)


def _written(path: Path, data: pa.Table, number: int) -> dict[str, Any]:
    partition = number % PARTITIONS
    name = f"p={partition}/part-{number:05}-{uuid.UUID(int=number)}-c000.zstd.parquet"
    file = path / name
    file.parent.mkdir(exist_ok=True)
    # Without the Arrow schema in the footer, as other writers of Delta tables leave it out.
    pq.write_table(data, file, compression="zstd", store_schema=False)
    ids = pc.min_max(data["id"]).as_py()
    stats = {
        "numRecords": data.num_rows,
        "minValues": {"id": ids["min"]},
        "maxValues": {"id": ids["max"]},
        "nullCount": {"id": 0},
    }
    return {
        "path": name,
        "partitionValues": {"p": str(partition)},
        "size": file.stat().st_size,
        "modificationTime": START_MILLIS,
        "dataChange": True,
        "stats": json.dumps(stats),
    }


def _written_vector(path: Path, deleted: np.ndarray[Any, Any], number: int) -> dict[str, Any]:
    """A file with one deletion vector, and what the log says about it."""
    name = uuid.UUID(int=FILES + number)
    blob = struct.pack("<I", VECTOR_MAGIC) + BitMap64(deleted.astype(np.uint64)).serialize()
    content = b"\x01" + struct.pack(">I", len(blob)) + blob + struct.pack(">I", zlib.crc32(blob))
    (path / f"deletion_vector_{name}.bin").write_bytes(content)
    return {
        "storageType": "u",
        "pathOrInlineDv": b85encode(name.bytes).translate(_TO_Z85).decode(),
        "offset": 1,
        "sizeInBytes": len(blob),
        "cardinality": len(deleted),
    }


def deleted_rows(path: Path) -> pa.Table:
    """The names of files and the positions in them of all deleted rows of a table."""
    found = []
    for number in range(FILES):
        file = next(path.glob(f"p=*/part-{number:05}-*.parquet"))
        vector = path / f"deletion_vector_{uuid.UUID(int=FILES + number)}.bin"
        # A byte of version, four of length and four of a mark before, four of a checksum behind.
        rows = pa.array(BitMap64.deserialize(vector.read_bytes()[9:-4]), pa.int64())
        found.append(pa.table({"_f": pa.repeat(file.name, len(rows)), "_r": rows}))
    return pa.concat_tables(found).combine_chunks()  # of several chunks, PySpark takes only some


def _write_log(path: Path, schema: pa.Schema, actions: list[dict[str, Any]]) -> None:
    names = [(field.name, DELTA_TYPES[field.type]) for field in schema] + [("p", "integer")]
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in names]
    text = json.dumps({"type": "struct", "fields": fields})
    has_vectors = any("deletionVector" in action["add"] for action in actions)
    features = ["deletionVectors"]
    head: list[dict[str, Any]] = [
        {"protocol": CLASSIC_PROTOCOL},
        {"metaData": {**METADATA, "schemaString": text}},
    ]
    if has_vectors:
        head[0]["protocol"] = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
    log = path / "_delta_log"
    log.mkdir()
    commit = "".join(line(action) + "\n" for action in head + actions)
    (log / f"{0:020}.json").write_text(commit, encoding="utf-8")


def _numeric(rng: np.random.Generator, first: int, count: int) -> dict[str, pa.Array]:
    ids = np.arange(first, first + count, dtype=np.int64)
    micros = START_MILLIS * 1_000 + ids * 250_000 + rng.integers(0, 250_000, count)
    return {
        "id": pa.array(ids),
        "val": pa.array(np.round(rng.normal(20, 5, count), 2)),
        "n": pa.array(rng.integers(0, 1_000, count).astype(np.int32)),
        "day": pa.array((19_723 + ids // 345_600).astype(np.int32)).cast(pa.date32()),
        "ts": pa.array(micros).cast(pa.timestamp("us", tz="UTC")),
    }


def _strings(rng: np.random.Generator, first: int, count: int) -> dict[str, pa.Array]:
    ids = np.arange(first, first + count, dtype=np.int64)
    numbers = pa.array(rng.integers(0, 10**12, count)).cast(pa.string())
    codes = pa.array([f"c{i:02}" for i in range(50)])
    return {
        "id": pa.array(ids),
        "name": _joined("site ", pa.array((rng.random(count) ** 2 * 10_000).astype(np.int64))),
        "note": _joined("measured by ", numbers, " at the weir"),
        "code": codes.take(pa.array(rng.integers(0, 50, count))),
    }


def _mixed(rng: np.random.Generator, first: int, count: int) -> dict[str, pa.Array]:
    numbers, texts = _numeric(rng, first, count), _strings(rng, first, count)
    return {**{name: numbers[name] for name in ("id", "val", "n", "ts")}, "name": texts["name"]}


def _joined(*parts: str | pa.Array) -> pa.Array:
    texts = [part if isinstance(part, str) else part.cast(pa.string()) for part in parts]
    return pc.binary_join_element_wise(*texts, "")


CONTENTS: Final = {
    "numeric": Content(_numeric),
    "strings": Content(_strings),
    "deletions": Content(_mixed, is_deleted_from=True),
}
