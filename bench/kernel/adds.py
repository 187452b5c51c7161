"""The add actions of the generated logs, as Arrow: each is a function of its number.

File `i` of a table of `total` files holds 1,000 consecutive ids, in blocks that are spread over the
log (writers of checkpoints shuffle actions), so a range of ids is a few files from everywhere.
"""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROWS_PER_FILE: Final = 1_000
PARTITIONS: Final = 20
SPREAD: Final = 1_000_003
"""A prime: multiplying by it visits every block once, unless it divides the number of files."""

START_MILLIS: Final = 1_704_067_200_000  # 2024-01-01 00:00:00 UTC
MIX: Final = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9))

SCHEMA: Final = {
    "type": "struct",
    "fields": [
        {"name": name, "type": type_, "nullable": True, "metadata": {}}
        for name, type_ in (
            ("id", "long"),
            ("name", "string"),
            ("val", "double"),
            ("ts", "timestamp"),
            ("p", "integer"),
        )
    ],
}
TEXTS: Final = pa.map_(pa.string(), pa.string())
DELETION_VECTOR: Final = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)


def adds(first: int, count: int, *, total: int, parsed: bool = False) -> pa.StructArray:
    """Files `first` to `first + count` as the column `add` of a checkpoint."""
    numbers = np.arange(first, first + count, dtype=np.int64)
    low, high = _bounds(numbers, total)
    partition = numbers % PARTITIONS
    keys, values = pa.array(["p"]).take(_zeros(count)), pa.array(partition).cast(pa.string())
    columns = {
        "path": paths(numbers),
        "partitionValues": pa.MapArray.from_arrays(_offsets(count), keys, values),
        "size": pa.array(20_000 + numbers % 5_000),
        "modificationTime": pa.array(START_MILLIS + numbers),
        "dataChange": pa.array(np.zeros(count, np.bool_)),
        "stats": _stats(low, high),
        "tags": pa.nulls(count, TEXTS),
        "deletionVector": pa.nulls(count, DELETION_VECTOR),
    }
    if parsed:
        columns["stats_parsed"] = _stats_parsed(low, high)
        columns["partitionValues_parsed"] = _struct(p=pa.array(partition.astype(np.int32)))
    return _struct(**columns)


def paths(numbers: np.ndarray[Any, Any]) -> pa.Array:
    """The files' paths: like Spark's, with an identifier that does not compress."""
    counted = pc.utf8_lpad(pa.array(numbers % 100_000).cast(pa.string()), 5, "0")
    partition = pa.array(numbers % PARTITIONS)
    return _joined("p=", partition, "/part-", counted, "-", _hex(numbers), "-c000.snappy.parquet")


def add_lines(first: int, count: int, *, total: int) -> list[str]:
    """Files as the lines of a commit."""
    found = adds(first, count, total=total).to_pylist(maps_as_pydicts="strict")
    for add in found:
        add["dataChange"] = True
    return [line({"add": {k: v for k, v in add.items() if v is not None}}) for add in found]


def remove_lines(numbers: list[int], *, millis: int) -> list[str]:
    """Removes of files as the lines of a commit."""
    return [
        line({"remove": {"path": path, "deletionTimestamp": millis, "dataChange": True}})
        for path in paths(np.array(numbers, np.int64)).to_pylist()
    ]


def line(action: dict[str, Any]) -> str:
    """An action as it stands in a commit."""
    return json.dumps(action, separators=(",", ":"))


def id_range(total: int) -> tuple[int, int]:
    """The ids, both included, of a thousandth of the files."""
    blocks = max(1, total // 1_000)
    first = total // 2
    return first * ROWS_PER_FILE, (first + blocks) * ROWS_PER_FILE - 1


def _bounds(
    numbers: np.ndarray[Any, Any], total: int
) -> tuple[dict[str, pa.Array], dict[str, pa.Array]]:
    """The smallest and the largest value of each column, by file."""
    blocks = np.where(numbers < total, numbers * SPREAD % total, numbers)
    least = blocks * ROWS_PER_FILE
    most = least + ROWS_PER_FILE - 1
    return _values(least, edge="a"), _values(most, edge="z")


def _values(ids: np.ndarray[Any, Any], *, edge: str) -> dict[str, pa.Array]:
    micros = (START_MILLIS + ids) * 1_000
    return {
        "id": pa.array(ids),
        "name": _joined(f"{edge}-customer-", pc.utf8_lpad(pa.array(ids).cast("string"), 14, "0")),
        "val": pa.array(ids / 7.0),
        "ts": pa.array(micros).cast(pa.timestamp("us", tz="UTC")),
    }


def _stats(low: dict[str, pa.Array], high: dict[str, pa.Array]) -> pa.Array:
    nulls = '"nullCount":{"id":0,"name":0,"val":0,"ts":0}}'
    return _joined(
        f'{{"numRecords":{ROWS_PER_FILE},"minValues":',
        *_json(low),
        ',"maxValues":',
        *_json(high),
        f",{nulls}",
    )


def _json(values: dict[str, pa.Array]) -> list[str | pa.Array]:
    moment = values["ts"].cast(pa.timestamp("ms", tz="UTC"))
    ts = pc.strftime(moment, format="%Y-%m-%dT%H:%M:%SZ")
    return [
        *('{"id":', values["id"], ',"name":"', values["name"], '","val":', values["val"]),
        *(',"ts":"', ts, '"}'),
    ]


def _stats_parsed(low: dict[str, pa.Array], high: dict[str, pa.Array]) -> pa.StructArray:
    count = len(low["id"])
    zeros = _zeros(count)
    return _struct(
        numRecords=pa.array(np.full(count, ROWS_PER_FILE)),
        minValues=_struct(**low),
        maxValues=_struct(**high),
        nullCount=_struct(**dict.fromkeys(low, zeros)),
    )


def _hex(numbers: np.ndarray[Any, Any]) -> pa.Array:
    """32 hexadecimal digits for each number, as different as random ones."""
    halves = []
    for factor in MIX:
        mixed = (numbers.astype(np.uint64) + np.uint64(1)) * factor
        mixed ^= mixed >> np.uint64(29)
        halves.append(mixed * MIX[0])
    raw = np.stack(halves, axis=1).view(np.uint8)
    digits = np.stack([raw >> 4, raw & 15], axis=2).reshape(-1)
    text = np.frombuffer(b"0123456789abcdef", np.uint8)[digits]
    offsets = np.arange(0, len(numbers) * 32 + 1, 32, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), len(numbers), buffers)


def _joined(*parts: str | pa.Array) -> pa.Array:
    texts = [part if isinstance(part, str) else part.cast(pa.string()) for part in parts]
    return pc.binary_join_element_wise(*texts, "")


def _zeros(count: int) -> pa.Array:
    return pa.array(np.zeros(count, np.int64))


def _offsets(count: int) -> pa.Array:
    return pa.array(np.arange(count + 1, dtype=np.int32))


def _struct(**fields: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
