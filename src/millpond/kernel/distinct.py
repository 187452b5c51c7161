"""Whether texts all differ, batch after batch, without making Python objects of them.

Each text becomes a number, and numbers are put into a table. Equal texts have equal numbers, so
where no number comes twice, no text does; where one does, whoever asks has to look at the texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD: Final = 8
_LONGEST: Final = 1 << 12
_FEWEST: Final = 1 << 10
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: an odd number without a pattern."""
_HALF: Final = np.uint64(32)
_MASKS: Final = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)


class Distinct:
    """The texts so far, as long as they differ."""

    def __init__(self) -> None:
        self._count = 0
        self._table: NDArray[np.uint64] = np.zeros(_FEWEST, np.uint64)
        """Numbers, each at one of the places that it gives; 0 is a free place."""
        self._is_used: NDArray[np.bool_] = np.zeros(_FEWEST, bool)

    def add(self, texts: pa.Array) -> bool:
        """Whether these surely differ from each other and from all before; if not, it is over."""
        numbers = numbers_of(texts)
        if numbers is None:
            return False
        count = self._count + len(numbers)
        if 3 * count > 2 * len(self._table):
            self._grow(6 * count)
        self._put(numbers)
        self._count = count
        # Those that are equal have come to the same place.
        return int(np.count_nonzero(self._is_used)) == count

    def _put(self, numbers: NDArray[np.uint64]) -> None:
        """Give each its place."""
        table, is_used, last = self._table, self._is_used, len(self._table) - 1
        places = (numbers >> np.uint64(64 - last.bit_length())).view(np.int64)
        while len(numbers):
            is_free = table.take(places) == 0
            free = places[is_free]
            table[free] = numbers[is_free]
            is_used[free] = True
            # Several may have taken the same place: the last one has it.
            left = np.flatnonzero(table.take(places) != numbers)
            numbers = numbers.take(left)
            # They are odd, so that each comes to all places.
            places = (places.take(left) + numbers.view(np.int64)) & last

    def _grow(self, least: int) -> None:
        known = self._table[self._is_used]
        size = 1 << (least - 1).bit_length()
        self._table = np.zeros(size, np.uint64)
        self._is_used = np.zeros(size, bool)
        self._put(known)


def numbers_of(texts: pa.Array) -> NDArray[np.uint64] | None:
    """An odd number for each text, none of which is null; None if one is very long."""
    starts, words = _words_of(texts)
    at, left = starts[:-1], np.diff(starts)
    if len(left) and left.max() > _LONGEST:
        return None
    numbers = left.astype(np.uint64) * _MIX
    rows = np.arange(len(left))
    found = np.empty_like(numbers)
    while len(rows):
        word = words[at]
        more = left > _WORD
        are_whole = more.all()
        if not are_whole:
            word &= _MASKS.take(left, mode="clip")
        numbers ^= word
        numbers *= _MIX
        numbers ^= numbers >> _HALF
        if not are_whole:
            found[rows] = numbers
            rows, at, left, numbers = rows[more], at[more], left[more], numbers[more]
        at, left = at + _WORD, left - _WORD
    return found * _MIX | np.uint64(1)


def _words_of(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Where texts start, one more for the end, and the eight bytes from each place on."""
    texts = texts.cast(pa.string())
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4).astype(np.int64)
    size = int(starts[-1] - starts[0])
    padded = np.zeros(size + _WORD, np.uint8)
    if size:
        padded[:size] = np.frombuffer(data, np.uint8, size, int(starts[0]))
    words = np.ndarray(size + 1, np.dtype("<u8"), padded, strides=(1,))
    return starts - starts[0], words
