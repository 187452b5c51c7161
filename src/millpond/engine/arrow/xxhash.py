"""The 64-bit xxHash of two longs as Spark's `xxhash64(seed, position)` computes it, vectorised.

>>> position_hashes(7, 0, 2).tolist()
[-4457042067931036189, 3110148328363424865]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_SPARK_SEED = 42


def position_hashes(seed: int, start: int, count: int) -> NDArray[np.int64]:
    """The hashes of the positions from `start` on."""
    positions = np.arange(start, start + count, dtype=np.int64).view(np.uint64)
    first = _hash_longs(
        np.array([seed], np.int64).view(np.uint64), np.array([_SPARK_SEED], np.uint64)
    )
    return _hash_longs(positions, first).view(np.int64)


def _hash_longs(values: NDArray[np.uint64], seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    hashes = seeds + _P5 + np.uint64(8)
    hashes = hashes ^ (_rotate(values * _P2, 31) * _P1)
    hashes = _rotate(hashes, 27) * _P1 + _P4
    hashes ^= hashes >> np.uint64(33)
    hashes *= _P2
    hashes ^= hashes >> np.uint64(29)
    hashes *= _P3
    hashes ^= hashes >> np.uint64(32)
    return hashes


def _rotate(values: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
