"""Sets of row positions in the portable 64-bit roaring layout, read with every length checked.

Bytes come from files that may be damaged, and no C library is asked about those: containers are
walked and checked here, and NumPy unpacks them. `dv.py` has the format around a bitmap.

>>> read_positions(write_positions(np.array([3, 4, 2**40])), expected=3)
array([            3,             4, 1099511627776])
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Positions: TypeAlias = "NDArray[np.int64]"

_PLAIN: Final = 12346
_WITH_RUNS: Final = 12347
_OFFSETS_FROM: Final = 4
"""With runs, offsets stand in the header from so many containers on."""
_ARRAY_MOST: Final = 4096
_BITSET_BYTES: Final = 8192
_BUCKET_LEAST: Final = 12
"""The bytes of the smallest bucket: its key and an empty bitmap."""


@dataclass(frozen=True, slots=True)
class _Container:
    """Where the low 16 bits of some positions lie, and how many there are."""

    base: int
    kind: Literal["array", "bitset", "runs"]
    count: int
    start: int
    size: int


def write_positions(positions: Positions) -> bytes:
    """Positions, in any order, as the bytes of a bitmap."""
    from pyroaring import BitMap64

    bitmap = BitMap64(positions.astype(np.uint64))
    bitmap.run_optimize()
    serialized: bytes = bitmap.serialize()
    return serialized


def read_positions(data: bytes, *, expected: int) -> Positions:
    """The positions of a bitmap, ascending; raises ValueError where the bytes are no such thing.

    The count is compared before anything is unpacked: a damaged header asks for no memory.
    """
    containers, end = _walk(data)
    total = sum(container.count for container in containers)
    if total != expected:
        raise ValueError(f"it holds {total} positions, not {expected}")
    if len(data) - end > 3 or any(data[end:]):
        raise ValueError(f"{len(data) - end} bytes follow the bitmap")
    positions = np.empty(total, np.int64)
    at = 0
    for container in containers:
        part = positions[at : at + container.count]
        np.add(_unpack(data, container), container.base, out=part, dtype=np.int64)
        at += container.count
    return positions


def _walk(data: bytes) -> tuple[list[_Container], int]:
    """The containers of all buckets, and where the last one ends."""
    (buckets,) = _numbers(data, 0, "<Q")
    if buckets > (len(data) - 8) // _BUCKET_LEAST:
        raise ValueError(f"it has too few bytes for {buckets} buckets")
    found: list[_Container] = []
    at, previous = 8, -1
    for _ in range(buckets):
        (key,) = _numbers(data, at, "<I")
        if not previous < key < 1 << 31:
            raise ValueError(f"the bucket {key} follows the bucket {previous}")
        at = _walk_bitmap(data, at + 4, key << 32, found)
        previous = key
    return found, at


def _walk_bitmap(data: bytes, at: int, base: int, found: list[_Container]) -> int:
    """Add the containers of a 32-bit bitmap; returns where it ends."""
    (cookie,) = _numbers(data, at, "<I")
    at += 4
    flags = b""
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = _slice(data, at, (count + 7) // 8)
        at += len(flags)
    elif cookie == _PLAIN:
        (count,) = _numbers(data, at, "<I")
        at += 4
    else:
        raise ValueError(f"{cookie:#x} begins no bitmap")
    if count > 1 << 16:
        raise ValueError(f"a bitmap can't have {count} containers")
    header = _array(data, at, 2 * count)
    at += 4 * count
    if not flags or count >= _OFFSETS_FROM:
        at += 4 * count  # containers follow one another: their offsets tell nothing new
    keys = header[::2]
    if (keys[1:] <= keys[:-1]).any():
        raise ValueError("the containers of a bitmap are not in order")
    for index, (key, less) in enumerate(header.reshape(-1, 2).tolist()):
        runs = bool(flags) and bool(flags[index >> 3] >> (index & 7) & 1)
        container = _container(data, at, base | key << 16, less + 1, runs=runs)
        found.append(container)
        at = container.start + container.size
    return at


def _container(data: bytes, at: int, base: int, count: int, *, runs: bool) -> _Container:
    kind: Literal["array", "bitset", "runs"]
    if runs:
        (number,) = _numbers(data, at, "<H")
        kind, at, size = "runs", at + 2, 4 * number
    elif count <= _ARRAY_MOST:
        kind, size = "array", 2 * count
    else:
        kind, size = "bitset", _BITSET_BYTES
    if at + size > len(data):
        raise ValueError("it ends inside of a container")
    return _Container(base, kind, count, at, size)


def _unpack(data: bytes, container: _Container) -> NDArray[Any]:
    """The low 16 bits of a container's positions, ascending."""
    if container.kind == "bitset":
        octets = np.frombuffer(data, np.uint8, container.size, container.start)
        low: NDArray[Any] = np.flatnonzero(np.unpackbits(octets, bitorder="little").view(bool))
    elif container.kind == "array":
        low = _array(data, container.start, container.count)
        if (low[1:] <= low[:-1]).any():
            raise ValueError("the positions of a container are not in order")
    else:
        low = _from_runs(_array(data, container.start, container.size // 2), container.count)
    if len(low) != container.count:
        raise ValueError(f"a container says {container.count} positions and has {len(low)}")
    return low


def _from_runs(pairs: NDArray[np.uint16], count: int) -> NDArray[np.int64]:
    starts, lengths = pairs[::2].astype(np.int64), pairs[1::2].astype(np.int64) + 1
    ends = starts + lengths
    if (starts[1:] < ends[:-1]).any() or (ends > 1 << 16).any():
        raise ValueError("the runs of a container are not in order")
    total = int(lengths.sum())
    if total != count:
        raise ValueError(f"a container says {count} positions and has {total}")
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(total)


def _numbers(data: bytes, at: int, layout: str) -> tuple[int, ...]:
    try:
        return struct.unpack_from(layout, data, at)
    except struct.error:
        raise ValueError("it ends too early") from None


def _slice(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise ValueError("it ends inside of a header")
    return data[at : at + size]


def _array(data: bytes, at: int, count: int) -> NDArray[np.uint16]:
    if at + 2 * count > len(data):
        raise ValueError("it ends inside of a header")
    return np.frombuffer(data, np.dtype("<u2"), count, at)
