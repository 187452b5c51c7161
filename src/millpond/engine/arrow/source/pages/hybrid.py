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
_WORD = 8
"""Bytes that are looked at for one number; it has 32 bits at most, and begins at one of eight."""


def numbers_at(
    data: memoryview, bits: int, count: int, places: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """The numbers at some places among so many, in order; None if there are too many runs.

    >>> data = memoryview(bytes([8, 5, 0b11, 0b10001000, 0b11000110, 0b11111010]))
    >>> numbers_at(data, 3, 12, np.array([0, 3, 4, 5, 6, 11]))  # four times 5, then 0 to 7
    array([5, 5, 0, 1, 2, 7])
    """
    stride = 1 + _FULL_GROUPS * bits
    full = _full_runs(data, bits)
    simple = int(np.searchsorted(places, full * _FULL))
    runs, inside = np.divmod(places[:simple], _FULL)
    found = _unpacked(data, runs * stride + 1, inside * bits, bits)
    if simple == len(places):
        return found
    others = _walked(data, bits, (full * stride, full * _FULL, count), places[simple:])
    return None if others is None else np.concatenate([found, others])


def _walked(
    data: memoryview, bits: int, span: tuple[int, int, int], places: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """The same of runs of any kind: where the first begins, its first place, and the last one."""
    at, done, count = span
    starts: list[int] = []
    begins: list[int] = []
    repeated: list[int] = []
    width = (bits + 7) // 8
    while done < count:
        if len(starts) == MOST_RUNS:
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
        inside = (places[packed] - np.array(starts)[runs]) * bits
        found[packed] = _unpacked(data, np.array(begins)[runs], inside, bits)
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
    data: memoryview, begins: NDArray[np.int64], inside: NDArray[np.int64], bits: int
) -> NDArray[np.int64]:
    """Numbers of so many bits, each so many bits behind a byte."""
    first = begins + (inside >> 3)
    last = int(first.max(initial=0))
    if last >= len(data) and len(first):
        raise ValueError("a run ends behind its page")
    if last + _WORD > len(data):  # what is behind the last byte is masked away below
        data = memoryview(bytes(data) + bytes(_WORD))
    words: NDArray[np.int64] = np.ndarray(len(data) - _WORD + 1, "<i8", data, 0, (1,))
    return (words[first] >> (inside & 7)) & ((1 << bits) - 1)


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
