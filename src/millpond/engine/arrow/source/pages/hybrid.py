"""Small numbers as Parquet stores them: runs of one number, and runs of numbers packed by bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from millpond.engine.arrow.source.pages.compact import read_varint

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_RUNS = 512
"""Runs are walked one by one, here: from so many on, decoding all numbers is cheaper."""
_FULL_GROUPS = 63
"""What fits in a header of one byte, and what writers put into a run of packed numbers."""
_FULL = 8 * _FULL_GROUPS


def numbers_at(
    data: memoryview, bits: int, count: int, places: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """The numbers at some places among so many; None if there are too many runs.

    >>> data = memoryview(bytes([8, 5, 0b11, 0b10001000, 0b11000110, 0b11111010]))
    >>> numbers_at(data, 3, 12, np.array([0, 3, 4, 5, 6, 11]))  # four times 5, then 0 to 7
    array([5, 5, 0, 1, 2, 7])
    """
    full = _full_runs(data, bits)
    starts = list(range(0, full * _FULL, _FULL))
    begins = list(range(1, full * (1 + _FULL_GROUPS * bits), 1 + _FULL_GROUPS * bits))
    repeated = [-1] * full
    at, done = full * (1 + _FULL_GROUPS * bits), full * _FULL
    width = (bits + 7) // 8
    while done < count:
        if len(starts) == full + MOST_RUNS:
            return None
        header, at = read_varint(data, at)
        if not header >> 1:
            raise ValueError("a run of nothing")
        starts.append(done)
        begins.append(at)
        if header & 1:
            done += header >> 1 << 3
            repeated.append(-1)
            at += (header >> 1) * bits
        else:
            done += header >> 1
            repeated.append(int.from_bytes(data[at : at + width], "little"))
            at += width
    runs = np.searchsorted(starts, places, "right") - 1
    found = np.array(repeated)[runs]
    packed = np.flatnonzero(found < 0)
    if len(packed):
        runs = runs[packed]
        offsets = (places[packed] - np.array(starts)[runs]) * bits
        found[packed] = _unpacked(data, np.array(begins)[runs] + (offsets >> 3), offsets & 7, bits)
    return found


def _full_runs(data: memoryview, bits: int) -> int:
    """How many runs at the beginning are packed and as long as writers make them, at most.

    Each says by its header where the next one is, so that those of full ones stand at equal
    distances up to the first that is another.
    """
    headers = np.frombuffer(data, np.uint8)[:: 1 + _FULL_GROUPS * bits]
    others = np.flatnonzero(headers != (_FULL_GROUPS << 1 | 1))
    return int(others[0]) if len(others) else len(headers)


def _unpacked(
    data: memoryview, first: NDArray[np.int64], shift: NDArray[np.int64], bits: int
) -> NDArray[np.int64]:
    """Numbers of so many bits that begin at a bit of a byte each."""
    raw = np.frombuffer(data, np.uint8)
    last = len(raw) - 1
    if len(first) and int(first.max()) > last:
        raise ValueError("a run ends behind its page")
    found = np.zeros(len(first), np.int64)
    for byte in range((bits + 14) // 8):
        # What is behind the last byte is masked away below.
        found |= raw[np.minimum(first + byte, last)].astype(np.int64) << (8 * byte)
    return (found >> shift) & ((1 << bits) - 1)


def is_all(data: memoryview, bits: int, count: int, number: int) -> bool:
    """Whether all of so many numbers are this one, told by runs of it alone."""
    at = done = 0
    width = (bits + 7) // 8
    while done < count and at < len(data):
        header, at = read_varint(data, at)
        value = int.from_bytes(data[at : at + width], "little")
        if header & 1 or value != number or not header:
            return False
        done += header >> 1
        at += width
    return done >= count
